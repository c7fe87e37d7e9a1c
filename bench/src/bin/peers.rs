//! Compares Treering with other engines; see `bench/README.md`.
//!
//! `cargo run --release -p treering-bench --features peers --bin peers`
//!
//! Exit codes: 0 all rows are valid, 1 some are void or missing, 2 bad input.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use clap::{Parser, ValueEnum};
use treering_bench::peers::child::{self, Job, Message, Row};
use treering_bench::peers::engines::{Durability, ENGINES, Spec};
use treering_bench::peers::report::{Lost, Report, Setup};
use treering_bench::peers::run::Until;
use treering_bench::peers::workload::Workload;
use treering_bench::peers::{Failure, Result};

/// Treering beside other engines: one run, one machine, every answer checked.
#[derive(Parser)]
#[command(version, max_term_width = 100)]
struct Args {
    /// Only this engine; can be repeated
    #[arg(long, value_name = "ENGINE", value_parser = engine_name)]
    only: Vec<String>,
    /// Only this workload; can be repeated
    #[arg(long, value_name = "WORKLOAD", value_enum)]
    workload: Vec<Workload>,
    /// Only this table
    #[arg(long, value_enum)]
    durability: Option<Durability>,
    /// Records of 16+16 bytes
    #[arg(long, default_value_t = 5_000_000, value_parser = records())]
    records: u64,
    /// Seconds of measurement per workload, after half as many of warm-up
    #[arg(long, default_value_t = 20.0, value_parser = seconds)]
    seconds: f64,
    /// Measure so many operations per workload instead, of all clients together, after half as many
    /// of warm-up
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1 << 40))]
    ops: Option<u64>,
    /// Before and after each measurement, have the engine write what it holds in memory, and say
    /// what was written with that
    #[arg(long)]
    drain: bool,
    /// Numbers of clients
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "1,2",
        value_parser = clap::value_parser!(u64).range(1..=64)
    )]
    threads: Vec<u64>,
    /// MiB of each engine's cache, a power of two
    #[arg(long, default_value_t = 32, value_parser = power_of_two)]
    cache: u64,
    /// Writes that are acknowledged together in groups
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    group: u64,
    /// Folder for the stores, on the drive to be measured; created if missing
    #[arg(long, default_value = "target/peers")]
    dir: PathBuf,
    /// Write all figures to this file as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Run as the process of one engine
    #[arg(long, hide = true)]
    child: bool,
}

fn engine_name(name: &str) -> std::result::Result<String, String> {
    if ENGINES.iter().any(|spec| spec.name == name) {
        return Ok(name.into());
    }
    let names: Vec<_> = ENGINES.iter().map(|spec| spec.name).collect();
    Err(format!("expected one of {}", names.join(", ")))
}

fn records() -> clap::builder::RangedU64ValueParser {
    clap::value_parser!(u64).range(1000..=1 << 32)
}

fn seconds(text: &str) -> std::result::Result<f64, String> {
    let parsed = text.parse().ok();
    let seconds = parsed.filter(|seconds| (0.01..=86_400.0).contains(seconds));
    seconds.ok_or_else(|| "expected a number from 0.01 to 86,400".into())
}

fn power_of_two(text: &str) -> std::result::Result<u64, String> {
    let parsed = text.parse().ok();
    let mib = parsed.filter(|mib: &u64| mib.is_power_of_two() && *mib <= 1 << 20);
    mib.ok_or_else(|| "expected a power of two".into())
}

fn main() -> ExitCode {
    let args = Args::parse();
    let outcome = if args.child {
        args.be_child().map(|()| true)
    } else {
        args.run()
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(e) => {
            eprintln!("peers: {e}");
            ExitCode::from(2)
        }
    }
}

impl Args {
    fn warm_up(&self) -> f64 {
        self.seconds / 2.0
    }

    /// The end of the warm-up, and that of the measurement, for so many clients.
    fn ends(&self, threads: u64) -> [Until; 2] {
        match self.ops {
            Some(ops) => [ops / 2, ops].map(|ops| Until::Ops(ops.div_ceil(threads))),
            None => [self.warm_up(), self.seconds]
                .map(|seconds| Until::Time(Duration::from_secs_f64(seconds))),
        }
    }

    fn workloads(&self) -> Vec<Workload> {
        match &self.workload[..] {
            [] => Workload::ALL.to_vec(),
            some => some.to_vec(),
        }
    }

    fn is_wanted(&self, spec: &Spec, durability: Durability) -> bool {
        let only = self.only.is_empty() || self.only.iter().any(|name| name == spec.name);
        let table = self.durability.is_none_or(|wanted| wanted == durability);
        only && table && spec.promise(durability).is_some()
    }

    fn be_child(&self) -> Result<()> {
        let (Some(durability), [threads], [only]) =
            (self.durability, &self.threads[..], &self.only[..])
        else {
            return Err(Failure::Child(
                "--child: expected one engine, one table, one number of threads".into(),
            ));
        };
        let spec = ENGINES.iter().find(|spec| spec.name == only);
        let [warm_up, measured] = self.ends(*threads);
        let job = Job {
            folder: self.dir.clone(),
            records: self.records,
            cache_bytes: self.cache << 20,
            durability,
            threads: *threads,
            group: self.group as usize,
            measured,
            warm_up,
            drain: self.drain,
            workloads: self.workloads(),
        };
        let spec = spec.expect("checked when parsed");
        child::work(spec, &job, &mut |message| child::tell(&message))
    }

    /// Checks the arguments at once, not after hours.
    fn check(&self) -> Result<()> {
        fs::create_dir_all(&self.dir).map_err(|source| Failure::File {
            path: self.dir.clone(),
            what: "cannot be made",
            source,
        })?;
        match &self.json {
            Some(path) => fs::write(beside(path), "").map_err(|e| unwritten(path, e)),
            None => Ok(()),
        }
    }

    /// Whether all rows are valid.
    fn run(&self) -> Result<bool> {
        self.check()?;
        let began = Instant::now();
        let mut report = Report::new(Setup {
            records: self.records,
            cache_bytes: self.cache << 20,
            group: self.group as usize,
            seconds: self.seconds,
            warm_up_seconds: self.warm_up(),
            ops: self.ops,
            drain: self.drain,
            machine: machine(),
        });
        for durability in Durability::ALL {
            for &threads in &self.threads {
                for spec in ENGINES {
                    if self.is_wanted(spec, durability) {
                        self.one(spec, durability, threads, began, &mut report);
                    }
                }
            }
        }
        report.finish();
        print!("{report}");
        if let Some(path) = &self.json {
            write_json(path, &report)?;
        }
        let stands = |row: &Row| row.void.is_none();
        Ok(report.lost.is_empty() && report.rows.iter().all(stands))
    }

    /// Runs one engine in its process.
    fn one(
        &self,
        spec: &Spec,
        durability: Durability,
        threads: u64,
        began: Instant,
        report: &mut Report,
    ) {
        let what = format!("{}, {}, {threads} threads", spec.name, durability.name());
        let run = self.command(spec, durability, threads);
        let outcome = run.and_then(|(mut command, folder)| {
            child::supervise(&mut command, &folder, &mut |message| match message {
                Message::Row(row) => {
                    let figure = match &row.void {
                        None => format!("{:.0} ops/s", row.ops_per_second),
                        Some(why) => format!("VOID: {why}"),
                    };
                    let at = began.elapsed().as_secs();
                    eprintln!("[{at} s] {what}, {}: {figure}", row.workload.name());
                    report.rows.push(row);
                }
                Message::Footprint(footprint) => report.footprints.push(footprint),
            })
        });
        if let Err(e) = outcome {
            eprintln!("{what}: {e}");
            let why = format!("{what}: {e}");
            report.lost.push(Lost { durability, why });
        }
    }

    fn command(
        &self,
        spec: &Spec,
        durability: Durability,
        threads: u64,
    ) -> Result<(Command, PathBuf)> {
        let program = std::env::current_exe()
            .map_err(|e| Failure::Child(format!("this program cannot be found: {e}")))?;
        let name = format!("{}-{}-{threads}", spec.name, durability.name());
        let folder = self.dir.join(name.replace(' ', "-"));
        let mut command = Command::new(program);
        command
            .arg("--child")
            .args(["--only", spec.name])
            .args(["--durability", durability.name()])
            .arg(format!("--threads={threads}"))
            .arg(format!("--records={}", self.records))
            .arg(format!("--seconds={}", self.seconds))
            .arg(format!("--cache={}", self.cache))
            .arg(format!("--group={}", self.group))
            .arg("--dir")
            .arg(&folder);
        if let Some(ops) = self.ops {
            command.arg(format!("--ops={ops}"));
        }
        if self.drain {
            command.arg("--drain");
        }
        for workload in &self.workload {
            let value = workload.to_possible_value().expect("none is hidden");
            command.arg(format!("--workload={}", value.get_name()));
        }
        Ok((command, folder))
    }
}

fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu.lines().find_map(|line| {
        let (name, model) = line.split_once(':')?;
        (name.trim() == "model name").then(|| model.trim())
    });
    format!(
        "{cores} cores ({}), Linux {}",
        model.unwrap_or("unknown"),
        kernel.trim()
    )
}

fn unwritten(path: &Path, source: std::io::Error) -> Failure {
    Failure::File {
        path: path.to_owned(),
        what: "cannot be written",
        source,
    }
}

fn beside(path: &Path) -> PathBuf {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    beside.into()
}

/// Writes to a temporary file and renames it, so that a file is never incomplete.
fn write_json(path: &Path, report: &Report) -> Result<()> {
    let json = serde_json::to_string_pretty(report).expect("numbers and strings");
    fs::write(beside(path), json + "\n")
        .and_then(|()| fs::rename(beside(path), path))
        .map_err(|e| unwritten(path, e))
}
