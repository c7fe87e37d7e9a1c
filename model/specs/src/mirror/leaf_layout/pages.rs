//! What a page takes, what a change makes of it, and what to do with one that refuses a record.

use super::room::{KEYS, N};
use super::sizes::Fences;
use super::state::{ABSENT, CUT, Content, Layout, Leaf, Map, Record, State, count};
use super::{Bug, LeafLayout};

/// What to do with a page that refuses a record (`Remedy`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Remedy {
    /// Convert it.
    Relayout(Layout),
    /// Split it before a key, 0 if there are too few records. The right page has this layout.
    Split(N, Layout),
}

impl LeafLayout {
    /// The keys of a map that have a record, with their places in it.
    fn keys_in<'a>(&'a self, map: &'a Map) -> impl Iterator<Item = (usize, N)> + Clone + 'a {
        let keys = self.keys.iter().copied().enumerate();
        keys.filter(|(k, _)| map[*k] != ABSENT)
    }

    /// The bytes of a value. Those of a cut one do not matter.
    pub(super) fn length(&self, value: Content) -> N {
        match value {
            CUT => 3,
            _ => self.lengths[value as usize - 1],
        }
    }

    /// `Bytes` of all records of a map.
    fn bytes(&self, map: &Map, beside: N) -> usize {
        let bytes = self
            .keys_in(map)
            .map(|(k, _)| beside as usize + self.length(map[k]) as usize);
        bytes.sum()
    }

    pub(super) fn fits_general(&self, layout: Layout, map: &Map, fences: Fences) -> bool {
        let beside = self.sizes.beside(layout, fences);
        self.bytes(map, beside) <= self.sizes.room(layout, fences, count(map)) as usize
    }

    fn end_of_places(&self, lower: N, len: N) -> N {
        lower + self.sizes.places(lower, len)
    }

    fn length_in(&self, map: &Map) -> N {
        let first = self.keys_in(map).next();
        first.map_or(0, |(k, _)| self.length(map[k]))
    }

    /// `LengthOf`: the length of all values of a page.
    pub(super) fn len_of(&self, layout: Layout, map: &Map) -> N {
        match layout {
            Layout::Dense if !self.sizes.is_semi() => self.length_in(map),
            _ => 0,
        }
    }

    /// Whether a record may be in a dense page with the records of `map` (`FitsDense`).
    fn is_like(&self, map: &Map, lower: N, (k, key): (usize, N)) -> bool {
        let len = self.length_in(map);
        self.length(map[k]) == len && key < self.end_of_places(lower, len)
    }

    fn fits_dense(&self, map: &Map, lower: N) -> bool {
        count(map) > 0 && self.keys_in(map).all(|at| self.is_like(map, lower, at))
    }

    /// `HasRoomInSemi`.
    pub(super) fn has_room_in_semi(&self, map: &Map, fences: Fences) -> bool {
        let room = self.sizes.room_of_semi(fences);
        let bytes = || self.bytes(map, self.sizes.beside_in_semi());
        room.is_some_and(|room| bytes() <= room as usize)
    }

    pub(super) fn fits(&self, layout: Layout, map: &Map, fences: Fences) -> bool {
        match layout {
            Layout::Dense if self.sizes.is_semi() => {
                count(map) > 0 && self.has_room_in_semi(map, fences)
            }
            Layout::Dense => self.fits_dense(map, fences.0),
            _ => self.fits_general(layout, map, fences),
        }
    }

    pub(super) fn has_place(&self, page: &Leaf, key: N) -> bool {
        self.sizes.is_semi() || key < self.end_of_places(page.lower, page.len)
    }

    fn number_of(&self, key: N) -> Option<usize> {
        self.keys.iter().position(|known| *known == key)
    }

    /// `With`. A key that is none changes nothing.
    fn with(&self, map: &Map, key: N, value: Content) -> Map {
        let mut map = *map;
        if let Some(k) = self.number_of(key) {
            map[k] = value;
        }
        map
    }

    /// `Below` and `From`: the records on both sides of a key.
    pub(super) fn sides(&self, map: &Map, at: N) -> (Map, Map) {
        let (mut below, mut from) = (*map, *map);
        for k in 0..KEYS {
            match self.keys.get(k) {
                Some(key) if *key < at => from[k] = ABSENT,
                _ => below[k] = ABSENT,
            }
        }
        (below, from)
    }

    /// `From` without its first record, if it has one.
    pub(super) fn without_first(&self, map: &Map) -> Map {
        let first = self.keys_in(map).next();
        first.map_or(*map, |(_, key)| self.with(map, key, ABSENT))
    }

    pub(super) fn takes(&self, page: &Leaf, key: N, value: Content) -> bool {
        let fits = || match page.layout {
            _ if value == ABSENT => true,
            Layout::Dense if self.sizes.is_semi() => {
                let with = self.with(&page.map, key, value);
                self.has_room_in_semi(&with, page.fences()) || self.bug == Bug::OverfillsSemi
            }
            Layout::Dense => {
                (self.length(value) == page.len || self.bug == Bug::CutsValue)
                    && (self.has_place(page, key) || self.bug == Bug::PlaceWraps)
            }
            layout => {
                let with = self.with(&page.map, key, value);
                self.fits_general(layout, &with, page.fences()) || self.bug == Bug::Overfills
            }
        };
        page.covers(key) && fits()
    }

    /// `Put`.
    pub(super) fn put(&self, page: &Leaf, key: N, value: Content) -> Leaf {
        let dense = page.layout == Layout::Dense;
        if value == ABSENT && dense && self.bug == Bug::DeleteKeepsBit {
            return *page;
        }
        let place = match dense && self.bug == Bug::PlaceWraps {
            true => page.lower + (key - page.lower) % self.sizes.places(page.lower, page.len),
            false => key,
        };
        let cuts = dense && self.bug == Bug::CutsValue && value != ABSENT;
        let cuts = cuts && self.length(value) != page.len;
        let part = if cuts { CUT } else { value };
        Leaf {
            map: self.with(&page.map, place, part),
            ..*page
        }
    }

    pub(super) fn can_be(&self, page: &Leaf, layout: Layout) -> bool {
        let fits = page.layout == layout || self.fits(layout, &page.map, page.fences());
        page.is_there() && (fits || self.bug == Bug::ConversionDropsRecord)
    }

    /// `Relaid`.
    pub(super) fn relaid(&self, page: &Leaf, layout: Layout) -> Leaf {
        if page.layout == layout {
            return *page;
        }
        let (mut map, dense) = (page.map, layout == Layout::Dense);
        if self.bug == Bug::ConversionDropsRecord && dense {
            for (k, key) in self.keys_in(&page.map) {
                if !self.is_like(&page.map, page.lower, (k, key)) {
                    map[k] = ABSENT;
                }
            }
        }
        Leaf {
            layout,
            len: self.len_of(layout, &page.map),
            map,
            ..*page
        }
    }

    /// `Truncated`.
    pub(super) fn truncated(&self, page: &Leaf, at: N) -> Leaf {
        Leaf {
            upper: at,
            map: self.sides(&page.map, at).0,
            ..*page
        }
    }

    /// `Built`, with LSN 0.
    pub(super) fn built(&self, layout: Layout, map: Map, lower: N, upper: N) -> Leaf {
        Leaf {
            layout,
            lower,
            upper,
            len: self.len_of(layout, &map),
            map,
            lsn: 0,
        }
    }

    /// `Near`: the number of records left of a split at the median.
    fn near(&self, map: &Map, n: usize) -> usize {
        let keys: Vec<N> = self.keys_in(map).map(|(_, key)| key).collect();
        self.sizes.near(&keys, n)
    }

    /// `Before`: the fence before the key that `n` keys of a map are smaller than.
    fn before(&self, map: &Map, n: usize) -> N {
        let mut keys = self.keys_in(map).map(|(_, key)| key).skip(n - 1);
        match (keys.next(), keys.next()) {
            (Some(left), Some(right)) => self.sizes.separator(left, right),
            _ => 0,
        }
    }

    /// `ByteMedian`: the number of records left of the boundary at which the bytes on both sides
    /// differ least.
    fn byte_median(&self, page: &Leaf) -> usize {
        let beside = self.sizes.beside(page.layout, page.fences()) as usize;
        let of = |(k, _): (usize, N)| beside + self.length(page.map[k]) as usize;
        let total: usize = self.keys_in(&page.map).map(of).sum();
        let mut left = 0;
        for (n, record) in self.keys_in(&page.map).enumerate() {
            let more = left + of(record);
            if 2 * more > total {
                let closer = if total - 2 * left <= 2 * more - total {
                    n
                } else {
                    n + 1
                };
                return closer.clamp(1, count(&page.map) - 1);
            }
            left = more;
        }
        count(&page.map) - 1
    }

    /// `Middle`: where a page is split at the median. 0 if it has too few records.
    pub(super) fn middle(&self, page: &Leaf) -> N {
        let median = match count(&page.map) {
            0 | 1 => return 0,
            n if page.layout == Layout::Dense => n / 2,
            _ => self.byte_median(page),
        };
        self.before(&page.map, self.near(&page.map, median))
    }

    /// `SplitOfDense`: where a dense page is split so that both sides fit.
    fn split_of_dense(&self, page: &Leaf) -> Remedy {
        let records = count(&page.map);
        let middle = if records > 1 {
            self.near(&page.map, records / 2)
        } else {
            0
        };
        let behind = (middle.max(1)..records).map(|n| self.before(&page.map, n));
        let mut splits = behind.flat_map(|at| [(at, Layout::Dense), (at, Layout::General)]);
        let possible = splits.find(|(at, layout)| {
            let (left, right) = self.sides(&page.map, *at);
            let stays = !self.sizes.is_semi() || self.has_room_in_semi(&left, (page.lower, *at));
            stays && self.fits(*layout, &right, (*at, page.upper))
        });
        match possible {
            Some((key, layout)) if self.bug != Bug::SplitUnfit => Remedy::Split(key, layout),
            _ => Remedy::Split(self.middle(page), Layout::Dense),
        }
    }

    /// `Partition`: where a page is split so that its left side can become dense. 0 if it cannot.
    fn partition(&self, page: &Leaf) -> N {
        if self.sizes.is_semi() {
            return 0;
        }
        let records = count(&page.map);
        let len = self.length_in(&page.map);
        let like = |(k, key): &(usize, N)| {
            let end = || self.sizes.end_of_partition(page.lower, len);
            self.length(page.map[*k]) == len && *key < end()
        };
        let mut keys = self.keys_in(&page.map).enumerate();
        match keys.find(|(_, at)| !like(at)) {
            Some((left, (_, first))) if records > 1 && left > 0 && left >= records / 2 => {
                let len = self.length_in(&page.map);
                match self.sizes.end_of_partition(page.lower, len) {
                    end if end <= first => end,
                    _ => self.before(&page.map, left),
                }
            }
            _ => 0,
        }
    }

    /// `FitsBack`.
    fn fits_back(&self, map: &Map, page: &Leaf) -> bool {
        self.fits_general(Layout::General, map, page.fences())
    }

    fn would_fit(&self, page: &Leaf, key: N, value: Content) -> bool {
        let old = self.fits_back(&page.map, page) || self.bug == Bug::ForgetsTheOld;
        let new = || self.fits_back(&self.with(&page.map, key, value), page);
        old && new() || self.bug == Bug::ConversionDropsRecord
    }

    fn is_nearly_empty(&self, page: &Leaf) -> bool {
        let records = count(&page.map);
        self.sizes.is_nearly_empty(records, page.len, page.fences())
    }

    /// `Remedy`, in a life whose options allow dense pages or not.
    pub(super) fn remedy(&self, allows: bool, page: &Leaf, key: N, value: Content) -> Remedy {
        if page.layout == Layout::Dense {
            return self.remedy_for_dense(page, key, value);
        }
        let alike = count(&page.map) > 0
            && (self.sizes.is_semi() || self.length(value) == self.length_in(&page.map));
        let may = allows && page.layout == Layout::General;
        if may && alike && self.can_be(page, Layout::Dense) {
            return Remedy::Relayout(Layout::Dense);
        }
        match self.partition(page) {
            at if allows && at > 0 => Remedy::Split(at, page.layout),
            _ => Remedy::Split(self.middle(page), page.layout),
        }
    }

    fn remedy_for_dense(&self, page: &Leaf, key: N, value: Content) -> Remedy {
        let would_fit = self.would_fit(page, key, value);
        let end = || self.end_of_places(page.lower, page.len);
        if !self.has_place(page, key) && end() < page.upper {
            let in_vain = self.bug == Bug::ConvertsInVain && self.fits_back(&page.map, page);
            return match self.is_nearly_empty(page) && (would_fit || in_vain) {
                true => Remedy::Relayout(Layout::General),
                false => Remedy::Split(end(), Layout::General),
            };
        }
        match would_fit {
            true => Remedy::Relayout(Layout::General),
            false => self.split_of_dense(page),
        }
    }

    /// `RightLayouts`: the layouts that the right page of a split may get.
    pub(super) fn right_layouts(&self, page: &Leaf, at: N, layout: Layout) -> Vec<Layout> {
        let general = layout.is_general() && page.layout.is_general();
        let right = self.sides(&page.map, at).1;
        let suits = |other: Layout| {
            let fits = || self.fits_general(other, &right, (at, page.upper));
            general && (fits() || self.bug == Bug::SuitsUnfit)
        };
        let all = self.generals.iter().copied();
        let others = all.filter(|other| *other != layout && suits(*other));
        std::iter::once(layout).chain(others).collect()
    }

    /// `Together`: the records of two pages.
    pub(super) fn together(map: &Map, other: &Map) -> Map {
        Map(std::array::from_fn(|k| {
            if other[k] == ABSENT { map[k] } else { other[k] }
        }))
    }

    /// `CanAbsorb`: whether a page can take the records and the upper fence of its neighbour.
    fn can_absorb(&self, page: &Leaf, record: &Record) -> bool {
        let both = Self::together(&page.map, &record.map);
        page.layout.is_general()
            && page.upper == record.key
            && self.fits_general(page.layout, &both, (page.lower, record.upper))
    }

    /// `Absorbed`.
    pub(super) fn absorbed(page: &Leaf, map: &Map, upper: N) -> Leaf {
        Leaf {
            upper,
            map: Self::together(&page.map, map),
            ..*page
        }
    }

    /// `RedonePut`: a put in redo. The page must take it as it is.
    fn redone_put(&self, s: &State, page: &Leaf, key: N, value: Content) -> Leaf {
        if self.takes(page, key, value) {
            return self.put(page, key, value);
        }
        if self.bug == Bug::DecidesAnew
            && page.covers(key)
            && let Remedy::Relayout(layout) = self.remedy(s.allows, page, key, value)
        {
            let other = self.relaid(page, layout);
            if self.takes(&other, key, value) {
                return self.put(&other, key, value);
            }
        }
        Leaf::lost()
    }

    /// `Changed`: what a record makes of a page that it names.
    fn changed(&self, s: &State, p: u8, page: &Leaf, record: &Record) -> Leaf {
        use super::state::Is;
        match record.is {
            _ if record.builds(p) => {
                let general = self.bug == Bug::RedoBuildsGeneral;
                let layout = if general {
                    Layout::General
                } else {
                    record.layout
                };
                match self.fits(layout, &record.map, (record.key, record.upper)) {
                    true => self.built(layout, record.map, record.key, record.upper),
                    false => Leaf::lost(),
                }
            }
            _ if record.ends(p) => Leaf::default(),
            Is::Put => self.redone_put(s, page, record.key, record.value),
            Is::Relayout if self.can_be(page, record.layout) => self.relaid(page, record.layout),
            Is::Split if page.covers(record.key) => self.truncated(page, record.key),
            Is::Merge if self.can_absorb(page, record) => {
                Self::absorbed(page, &record.map, record.upper)
            }
            Is::Relayout | Is::Split | Is::Merge => Leaf::lost(),
        }
    }

    /// `Redone`: a page after redo of record `n`.
    pub(super) fn redone(&self, s: &State, p: u8, page: &Leaf, n: N) -> Leaf {
        use super::state::Is;
        let record = &s.log[n as usize - 1];
        let has = page.lsn >= n && self.bug != Bug::RedoIgnoresPageLsn;
        let skips = record.is == Is::Relayout && self.bug == Bug::RedoSkipsRelayouts;
        let lost = *page == Leaf::lost() && !record.builds(p) && !record.ends(p);
        if !record.names(p) || lost || has || skips {
            return *page;
        }
        match self.changed(s, p, page, record) {
            gone if !gone.is_there() => gone,
            after => after.stamped(n),
        }
    }
}
