//! The designs and the points at which they are compared.

use treering_engine::TreeSpec;
use treering_sim::replay::{Acknowledge, Oversize, Precondition, ReplayConfig, Size, Target, Tree};

use crate::choice::{Choice, What};
use crate::inputs::Input;

/// Trees on drives. Each runs with both logs (`bminus` is sparse by default) and both drives.
const PAGES: [&str; 8] = [
    "btree",
    "btree+cow(table=each-flush)",
    "btree+shadow",
    "bf(policy=published)",
    "bf(policy=published)+cow(table=each-flush)",
    "bf(policy=published)+shadow",
    "bf(policy=published)+shadow(T=2KiB)",
    "bminus",
];
const PM: [&str; 4] = ["ccl", "lodge", "pmtree", "pmtree-global"];
/// Designs whose curves are compared.
const CURVES: [(&str, &str); 4] = [
    ("btree", "ssd"),
    ("btree+cow(table=each-flush)", "ssd"),
    ("bf(policy=published)", "ssd"),
    ("bminus", "csd"),
];

const CACHES: [f64; 3] = [0.02, 0.10, 0.40];
const CURVE: [f64; 12] = [
    0.005, 0.01, 0.02, 0.03, 0.05, 0.08, 0.12, 0.18, 0.25, 0.35, 0.5, 0.7,
];
const OVER_PROVISIONINGS: [f64; 2] = [0.07, 0.28];

pub(crate) struct Cell {
    pub(crate) name: String,
    /// Index of the trace.
    pub(crate) input: usize,
    pub(crate) config: ReplayConfig,
}

/// A tree, or none, on a device.
struct Design {
    tree: String,
    device: &'static str,
}

impl Design {
    fn of(tree: &str, device: &'static str) -> Design {
        Design {
            tree: tree.to_owned(),
            device,
        }
    }

    fn all() -> Vec<Design> {
        let mut all = Vec::new();
        for device in ["ssd", "csd"] {
            for tree in PAGES {
                all.push(Design::of(tree, device));
                let other = match tree {
                    "bminus" => "packed",
                    _ => "sparse",
                };
                all.push(Design::of(&format!("{tree}+{other}"), device));
            }
            all.push(Design::of("none", device));
        }
        all.extend(PM.map(|tree| Design::of(tree, "pm")));
        all
    }

    /// The cells' configurations, each with the name of its point.
    fn points(&self, caches: &[f64]) -> Vec<(String, Point)> {
        let states = [
            (Precondition::None, "fresh"),
            (Precondition::Steady, "steady"),
        ];
        let caches = match self.tree.as_str() {
            "none" => &caches[..1],
            _ => caches,
        };
        if self.device == "pm" {
            return vec![(String::new(), Point::default())];
        }
        let mut points = Vec::new();
        for cache in caches {
            for (state, word) in states {
                for op in OVER_PROVISIONINGS {
                    let name = match self.tree.as_str() {
                        "none" => format!(" {word} op {:.0}%", op * 100.0),
                        _ => format!(" cache {}% {word} op {:.0}%", cache * 100.0, op * 100.0),
                    };
                    points.push((
                        name,
                        Point {
                            cache: *cache,
                            state,
                            op: Some(op),
                        },
                    ));
                }
            }
        }
        points
    }

    fn config(&self, input: &Input, point: &Point) -> ReplayConfig {
        let mut target = Target::builtin(self.device).expect("a built-in device");
        if let (Some(flash), Some(op)) = (target.flash_mut(), point.op) {
            flash.over_provisioning = op;
        }
        if let Some(precondition) = target.precondition_mut() {
            *precondition = point.state;
        }
        let mut config = ReplayConfig::new(input.path.clone(), target);
        config.tree = match self.tree.as_str() {
            "none" => Tree::Direct,
            spec => {
                let spec: TreeSpec = spec.parse().expect("a tree");
                let pages = spec.options().map(Tree::Pages);
                pages.unwrap_or_else(|| Tree::Pm(spec.pm_options().expect("of one kind")))
            }
        };
        config.cache = Size::Share(point.cache);
        config.oversize = Oversize::Clamp;
        config.clients = input.clients;
        if input.clients > 1 && matches!(config.tree, Tree::Pages(_)) {
            config.acknowledge = Acknowledge::Commit;
        }
        config
    }
}

/// A point of the matrix.
struct Point {
    cache: f64,
    state: Precondition,
    op: Option<f64>,
}

impl Default for Point {
    fn default() -> Point {
        Point {
            cache: 0.1,
            state: Precondition::None,
            op: None,
        }
    }
}

/// The cells that were asked for.
pub(crate) fn cells(choice: &Choice, inputs: &[Input]) -> Vec<Cell> {
    let designs = match choice.what {
        What::Points(_) | What::Prefix => Design::all(),
        What::Curves => CURVES.map(|(tree, device)| Design::of(tree, device)).into(),
    };
    let mut cells = Vec::new();
    for (i, input) in inputs.iter().enumerate() {
        for design in &designs {
            let pair = format!("{} {} on {}", input.name, design.tree, design.device);
            let names = [input.name.as_str(), design.tree.as_str(), design.device];
            // The small part has one pair in twelve.
            let left_out = choice.quick && !choice.draw(&names).is_multiple_of(12);
            if left_out || !choice.has(&input.name, &format!("{} {}", design.tree, design.device)) {
                continue;
            }
            for (point, at) in chosen(choice, design, &names) {
                let name = format!("{pair}{point}");
                if choice.only.iter().all(|word| name.contains(word.as_str())) {
                    let mut config = design.config(input, &at);
                    config.method = choice.method;
                    config.drain = choice.drain && matches!(config.tree, Tree::Pages(_));
                    config.seed = choice.seed;
                    cells.push(Cell {
                        name,
                        input: i,
                        config,
                    });
                }
            }
        }
    }
    cells
}

fn chosen(choice: &Choice, design: &Design, names: &[&str]) -> Vec<(String, Point)> {
    let number = match choice.what {
        What::Curves => {
            let of = |cache: f64| {
                let point = Point {
                    cache,
                    ..Point::default()
                };
                (format!(" cache {}%", cache * 100.0), point)
            };
            return CURVE.map(of).into();
        }
        What::Prefix => 1,
        What::Points(number) => number,
    };
    let mut points = design.points(&CACHES);
    points.sort_by_cached_key(|(name, _)| {
        let mut names = names.to_vec();
        names.push(name);
        choice.draw(&names)
    });
    points.truncate(number);
    points
}
