//! `treering devices`, and the parser of `--device` for all commands.

use treering_engine::device::FileOptions;
use treering_sim::csd::{self, CsdProfile};
use treering_sim::pm::{self, PmProfile};
use treering_sim::replay::{Precondition, Target};
use treering_sim::ssd::{SsdProfile, builtin};

use crate::args::{Before, DevicesArgs};
use crate::failure::Failure;
use crate::output::{self, Output};

/// Parses the value of `--device`.
pub(crate) fn find(text: &str) -> Result<Target, Failure> {
    if let Some(path) = text.strip_prefix("file:") {
        if path.is_empty() {
            return Err(Failure::usage(
                "--device file:PATH: expected a path after `file:`, found none",
            ));
        }
        return Ok(Target::File(path.into(), FileOptions::default()));
    }
    if let Some(target) = Target::builtin(text) {
        return Ok(target);
    }
    if !text.ends_with(".toml") {
        let known = Target::drives().collect::<Vec<_>>().join(", ");
        return Err(Failure::usage(format!(
            "--device {text}: no such drive; expected {known}, PROFILE.toml or file:PATH"
        )));
    }
    let toml = std::fs::read_to_string(text).map_err(|e| Failure::file(text, &e))?;
    Ok(Target::from_toml(text, &toml)?)
}

/// What flags say of a simulated drive besides its profile.
pub(crate) struct Adjusted<'a> {
    pub(crate) over_provisioning: Option<f64>,
    pub(crate) gc: Option<&'a str>,
    pub(crate) capacity: Option<u64>,
    pub(crate) precondition: Option<Before>,
}

impl Adjusted<'_> {
    /// Changes what a drive has of it; without a flag, the profile decides.
    pub(crate) fn apply(&self, target: &mut Target) {
        if let Some(flash) = target.flash_mut() {
            flash.over_provisioning = self.over_provisioning.unwrap_or(flash.over_provisioning);
            if let Some(policy) = self.gc {
                flash.gc = policy.into();
            }
        }
        if let Some(capacity) = target.capacity_mut() {
            *capacity = self.capacity;
        }
        if let Some(precondition) = target.precondition_mut() {
            *precondition = match self.precondition {
                None | Some(Before::None) => Precondition::None,
                Some(Before::Fill) => Precondition::Fill,
                Some(Before::Steady) => Precondition::Steady,
            };
        }
    }
}

/// The names of all built-in devices.
fn names() -> impl Iterator<Item = &'static str> {
    Target::drives().chain(Target::memories())
}

/// One device of the listing.
#[derive(serde::Serialize)]
struct Listed<'a> {
    name: &'a str,
    /// `ssd`, `csd` or `pm`.
    kind: &'static str,
    description: String,
    #[serde(flatten)]
    numbers: Numbers,
    toml: &'a str,
}

/// The parameters of each kind of device.
#[derive(serde::Serialize)]
#[serde(untagged)]
enum Numbers {
    Flash(Flash),
    Pm(Persistent),
}

#[derive(serde::Serialize)]
struct Flash {
    over_provisioning: f64,
    pages_per_block: u32,
    gc: String,
    channels: u32,
    dies_per_channel: u32,
    read_us: f64,
    program_us: f64,
    erase_us: f64,
    channel_mb_per_s: f64,
    pe_limit: Option<u32>,
    codec: Option<String>,
    level: Option<u32>,
    logical_over_physical: Option<f64>,
}

#[derive(serde::Serialize)]
struct Persistent {
    dimms: u32,
    interleave_bytes: u32,
    eadr: bool,
    buffer_lines: u32,
    replacement: String,
    full_lines: String,
    read_miss_ns: f64,
    ntstore_ns: f64,
    clwb_ns: f64,
    media_read_gb_per_s: f64,
    media_write_gb_per_s: f64,
}

#[derive(serde::Serialize)]
struct Document<'a> {
    schema: &'static str,
    complete: bool,
    devices: Vec<Listed<'a>>,
}

/// Lists all drives, or prints one.
pub(crate) fn run(args: &DevicesArgs) -> Result<(), Failure> {
    let json = Output::if_given("--json", args.json.as_deref(), &[])?;
    let names: Vec<&str> = match &args.name {
        Some(name) => vec![name],
        None => names().collect(),
    };
    let mut devices = Vec::new();
    for name in names {
        if let Some((toml, profile)) = csd::builtin(name) {
            devices.push(compressing(name, toml, profile));
            continue;
        }
        if let Some((toml, profile)) = pm::builtin(name) {
            devices.push(persistent_memory(name, toml, profile));
            continue;
        }
        let Some((toml, profile)) = builtin(name) else {
            let names = self::names().collect::<Vec<_>>().join(", ");
            let why = format!("{name}: no such device; expected {names}");
            return Err(Failure::usage(why));
        };
        devices.push(listed(name, toml, profile));
    }
    if let Some(json) = &json {
        let document = Document {
            schema: "treering.devices/1",
            complete: true,
            devices,
        };
        json.write(&output::json(&document)?)?;
        if *json == Output::Stdout {
            return Ok(());
        }
        devices = document.devices;
    }
    let text: String = match &args.name {
        Some(_) => devices.iter().map(|d| d.toml).collect(),
        None => devices
            .iter()
            .map(|d| format!("{:<12} {}\n", d.name, d.description))
            .collect(),
    };
    output::say(text.as_bytes())
}

fn listed<'a>(name: &'a str, toml: &'a str, profile: SsdProfile) -> Listed<'a> {
    Listed {
        name,
        kind: "ssd",
        description: profile.description.clone(),
        numbers: Numbers::Flash(flash(profile)),
        toml,
    }
}

fn compressing<'a>(name: &'a str, toml: &'a str, profile: CsdProfile) -> Listed<'a> {
    Listed {
        name,
        kind: "csd",
        description: profile.description,
        numbers: Numbers::Flash(Flash {
            codec: Some(profile.codec),
            level: Some(profile.level),
            logical_over_physical: Some(profile.logical_over_physical),
            ..flash(profile.flash)
        }),
        toml,
    }
}

fn flash(profile: SsdProfile) -> Flash {
    Flash {
        over_provisioning: profile.over_provisioning,
        pages_per_block: profile.pages_per_block,
        gc: profile.gc,
        channels: profile.channels,
        dies_per_channel: profile.dies_per_channel,
        read_us: profile.read_us,
        program_us: profile.program_us,
        erase_us: profile.erase_us,
        channel_mb_per_s: profile.channel_mb_per_s,
        pe_limit: profile.pe_limit,
        codec: None,
        level: None,
        logical_over_physical: None,
    }
}

fn persistent_memory<'a>(name: &'a str, toml: &'a str, profile: PmProfile) -> Listed<'a> {
    Listed {
        name,
        kind: "pm",
        description: profile.description,
        numbers: Numbers::Pm(Persistent {
            dimms: profile.dimms,
            interleave_bytes: profile.interleave_bytes,
            eadr: profile.eadr,
            buffer_lines: profile.buffer.lines,
            replacement: profile.buffer.replacement,
            full_lines: profile.buffer.full_lines,
            read_miss_ns: profile.times.read_miss_ns,
            ntstore_ns: profile.times.ntstore_ns,
            clwb_ns: profile.times.clwb_ns,
            media_read_gb_per_s: profile.times.media_read_gb_per_s,
            media_write_gb_per_s: profile.times.media_write_gb_per_s,
        }),
        toml,
    }
}
