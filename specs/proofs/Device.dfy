// A block device with a volatile write cache: specs/contract/Device.tla.
//
// A *place* holds one block. Its value is the sequence of versions that a crash may leave there,
// oldest first: the first is on the medium, and the others were written since and are not flushed.
// Reading returns the last. A flush that fails forgets: no later flush will put those versions on
// the medium, only writing them again will. Such places are called `lost`.

module Device {
  function Durably<T>(block: T): seq<T> { [block] }

  function Newest<T>(place: seq<T>): T
    requires |place| > 0
  {
    place[|place| - 1]
  }

  // Every place has at least one version.
  predicate Written<P(!new), T>(places: imap<P, seq<T>>) {
    forall p :: p in places ==> |places[p]| > 0
  }

  // The result of reading several places.
  function NewestOf<P(!new), T>(places: imap<P, seq<T>>): imap<P, T>
    requires Written(places)
  {
    imap p | p in places :: Newest(places[p])
  }

  // After a flush, which does not help the lost places.
  function Flushed<P(!new), T>(places: imap<P, seq<T>>, lost: iset<P>): imap<P, seq<T>>
    requires Written(places)
  {
    imap p | p in places :: if p in lost then places[p] else Durably(Newest(places[p]))
  }

  function Unflushed<P(!new), T>(places: imap<P, seq<T>>): iset<P> {
    iset p | p in places && |places[p]| > 1
  }

  // What a crash may leave of several places: of each any version, independently of the others.
  predicate AfterCrash<P(!new), T>(places: imap<P, seq<T>>, left: imap<P, T>) {
    && (forall p :: p in left <==> p in places)
    && (forall p :: p in places ==> left[p] in places[p])
  }

  function AllDurably<P(!new), T>(blocks: imap<P, T>): imap<P, seq<T>> {
    imap p | p in blocks :: Durably(blocks[p])
  }

  // What is read is among what a crash may leave. So a killed process, which reads the newest
  // versions, is a special case of a power cut.
  lemma NewestMaySurvive<P(!new), T>(places: imap<P, seq<T>>)
    requires Written(places)
    ensures AfterCrash(places, NewestOf(places))
  {
  }
}
