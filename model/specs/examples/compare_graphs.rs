//! Compares a mirror's state graph with TLC's: `cargo run --release -p treering-specs --example
//! compare_graphs -- SPEC CONFIG.cfg DUMP.dot`.
//!
//! TLC writes the dump for `-dump dot,actionlabels DUMP.dot`. `treering check --graph` does both
//! steps; this example shows the comparison alone.

use std::path::Path;
use std::process::ExitCode;

use treering_specs::graph::{Difference, dump_text, missing, read_dump};
use treering_specs::{Config, check::mirrors};

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [spec, config, dump] = &arguments[..] else {
        return Err("expected SPEC CONFIG.cfg DUMP.dot".into());
    };
    let mirror = mirrors::open(spec, &Config::read(Path::new(config))?)?;
    let (ours, theirs) = (mirror.graph()?, read_dump(Path::new(dump))?);
    for (name, graph) in [("mirror", &ours), ("TLC", &theirs)] {
        let (states, edges) = (graph.states.len(), graph.edges.len());
        println!("{name}: {states} states, {edges} edges, {:?}", graph.labels);
    }
    let text = |state| {
        let ours = mirror.text(state);
        ours.or_else(|| dump_text(Path::new(dump), state))
            .unwrap_or_default()
    };
    let tell = |who: &str, difference: Difference| match difference {
        Difference::State(s) => println!("only {who} has the state\n{}", text(s)),
        Difference::Initial(s) => println!("only {who} starts in\n{}", text(s)),
        Difference::Edge(from, label, to) => {
            println!(
                "only {who} has {label} from\n{}to\n{}",
                text(from),
                text(to)
            );
        }
    };
    let differences = [
        ("the mirror", missing(&ours, &theirs)),
        ("TLC", missing(&theirs, &ours)),
    ];
    let mut equal = true;
    for (who, difference) in differences {
        if let Some(difference) = difference {
            equal = false;
            tell(who, difference);
        }
    }
    let run = mirror.run(&mirrors::Effort::default())?;
    println!("equal: {equal}; stateright: {run:?}");
    if let Some(found) = mirror.counterexample()? {
        println!(
            "{} violated after {} states",
            found.property,
            found.steps.len()
        );
    }
    Ok(ExitCode::from(u8::from(!equal)))
}
