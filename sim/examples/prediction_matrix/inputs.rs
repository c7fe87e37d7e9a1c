//! The traces: real ones, and generated ones whose locality differs.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use treering_traces::generate::{GenParams, ValueSize, Workload, build};
use treering_traces::import::{Format, ImportOptions, import_file};
use treering_traces::{Op, Writer};

use crate::choice::Choice;

pub(crate) struct Input {
    pub(crate) name: String,
    pub(crate) is_real: bool,
    pub(crate) path: PathBuf,
    /// Clients that wait for commits together; 1 for a log that is flushed now and then.
    pub(crate) clients: u32,
}

/// Name, format and file.
const REAL: [(&str, &str, &str); 2] = [
    ("cloudphysics", "cloudphysics", "cloudphysics.csv.xz"),
    ("tpcc", "mqsim", "mqsim-tpcc.trace.xz"),
];

/// Imports and generates the traces into `folder`.
pub(crate) fn all(choice: &Choice, folder: &Path) -> Vec<Input> {
    let mut inputs = Vec::new();
    match std::env::var_os("TREERING_TRACES") {
        None => eprintln!("real traces are left out: TREERING_TRACES names no folder"),
        Some(traces) => {
            for (name, format, file) in REAL {
                let (from, path) = (
                    Path::new(&traces).join(file),
                    folder.join(format!("{name}.trz")),
                );
                let format: Format = format.parse().expect("a format");
                let go_on = &mut |_, _| ControlFlow::Continue(());
                import_file(format, &from, &ImportOptions::default(), &path, go_on)
                    .unwrap_or_else(|e| panic!("{name}: {e}"));
                inputs.push(Input {
                    name: name.into(),
                    is_real: true,
                    path,
                    clients: 1,
                });
            }
        }
    }
    for (name, params) in generated(choice) {
        let path = folder.join(format!("{name}.trz"));
        write(&params, &path).unwrap_or_else(|e| panic!("{name}: {e}"));
        inputs.push(Input {
            name: name.into(),
            is_real: false,
            path,
            clients: params.clients,
        });
    }
    inputs
}

fn generated(choice: &Choice) -> Vec<(&'static str, GenParams)> {
    use Workload::*;
    let of = |workload| {
        let mut params = GenParams::new(workload, choice.records);
        (params.ops, params.seed) = (Some(4 * choice.records), choice.seed);
        // Its default mix is that of YCSB D.
        params.writes = (workload == Latest).then_some(0.5);
        params
    };
    let mut all: Vec<(&'static str, GenParams)> = Workload::ALL
        .iter()
        .filter(|(workload, _)| !matches!(workload, Load | Uniform | Zipf))
        .map(|(workload, name)| (*name, of(*workload)))
        .collect();
    let deletes = GenParams {
        deletes: Some(0.1),
        ..of(Zipf)
    };
    let sizes = GenParams {
        value_size: Some(ValueSize {
            min: 100,
            max: 2048,
        }),
        records: choice.records / 4,
        ..of(Zipf)
    };
    let clients = GenParams {
        clients: 8,
        theta: Some(0.8),
        ..of(Zipf)
    };
    all.extend([
        ("zipf-deletes", deletes),
        ("zipf-sizes", sizes),
        ("zipf-clients", clients),
    ]);
    all
}

fn write(params: &GenParams, path: &Path) -> Result<(), treering_traces::TraceError> {
    let (header, mut source) = build(params)?;
    let mut writer = Writer::create(path, header)?;
    let mut op = Op::default();
    while source.next_op(&mut op)? {
        writer.write(&op)?;
    }
    writer.finish().map(drop)
}
