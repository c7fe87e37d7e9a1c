//! The report as a self-contained HTML page.

use treering_sim::report::html::{
    Cell, Curve, Lines, Scale, Table, bar_picture, escape, heading, page, sentences,
};

use super::{Device, DriveReport, text};

/// Curves of the timeline, those with the most bytes; a chart has eight colours.
const MOST_CURVES: usize = 6;
/// Groups of the chart of causes.
const MOST_GROUPS: usize = 10;

/// Renders the page. `command` is the command line that makes the same report, if there is one.
#[must_use]
pub fn render(r: &DriveReport, command: Option<&str>) -> String {
    let title = match r.program.command.first() {
        Some(program) => format!("{program} on {}", r.device.profile),
        None => format!("{} on {}", r.recording.file, r.device.profile),
    };
    let summary = text::summary(r).into_iter();
    let summary: Vec<String> = summary
        .map(|(name, value)| format!("{name}: {value}"))
        .collect();
    let mut out = sentences(&summary);
    for warning in r.all_warnings() {
        out += &format!("<p class=\"warn\">{}</p>\n", escape(&warning));
    }
    out += &heading("Write amplification by cause");
    out += &picture_of_causes(r);
    out += &table("Write amplification by cause", text::causes(r));
    out += &heading("Drives, measured beside predicted");
    out += &picture_of_drives(r);
    out += &table("Drives", text::devices(r));
    out += &sentences(&[text::LEGEND.to_string()]);
    out += &heading("What reached the drive, over time");
    out += &picture_of_time(r);
    if !r.files.is_empty() {
        out += &heading("Files with the most bytes");
        out += &table("Files with the most bytes", text::files(r));
    }
    if let Some(command) = command {
        out += &heading("The same again");
        out += &format!("<pre>{}</pre>\n", escape(command));
    }
    page(&title, &out)
}

/// A table whose first row is its head.
fn table(label: &str, rows: Vec<Vec<String>>) -> String {
    let mut rows = rows.into_iter();
    let head = rows.next().unwrap_or_default();
    let cells = |row: Vec<String>| row.iter().map(|cell| Cell::read(cell)).collect();
    let table = Table {
        label,
        head: head.iter().map(String::as_str).collect(),
        rows: rows.map(cells).collect(),
    };
    table.html()
}

fn picture_of_causes(r: &DriveReport) -> String {
    let over = r.measured.over_bytes.max(1) as f64;
    let causes = r.causes.iter().filter(|cause| cause.host_bytes > 0);
    let causes: Vec<_> = causes.take(MOST_GROUPS).collect();
    if causes.is_empty() {
        return String::new();
    }
    let of = |bytes: u64| bytes as f64 / over;
    let gc = |gc_bytes: &[u64]| of(gc_bytes.first().copied().unwrap_or(0));
    let series = vec![
        ("written", causes.iter().map(|c| of(c.bytes)).collect()),
        ("host", causes.iter().map(|c| of(c.host_bytes)).collect()),
        (
            "moved by gc",
            causes.iter().map(|c| gc(&c.gc_bytes)).collect(),
        ),
    ];
    let y = format!("bytes over {} bytes", r.measured.over);
    let groups = causes.iter().map(|cause| cause.name.clone()).collect();
    bar_picture(groups, series, ("cause", &y)).figure("Write amplification by cause")
}

fn picture_of_drives(r: &DriveReport) -> String {
    let measured = |d: &Device| d.wa.device.map_or(0.0, |wa| wa.total);
    let predicted = |d: &Device| {
        let predicted = d.wa.predicted.as_ref().and_then(|p| p.device);
        predicted.map_or(0.0, |p| p.total.value())
    };
    let name = |d: &Device| match d.device.over_provisioning {
        Some(op) => format!("{} {:.0} %", d.device.profile, 100.0 * op),
        None => d.device.profile.clone(),
    };
    let series = vec![
        ("measured", r.devices.iter().map(measured).collect()),
        ("predicted", r.devices.iter().map(predicted).collect()),
    ];
    let y = format!("flash bytes over {} bytes", r.measured.over);
    let groups = r.devices.iter().map(name).collect();
    bar_picture(groups, series, ("drive", &y)).figure("Bytes programmed, measured beside predicted")
}

fn picture_of_time(r: &DriveReport) -> String {
    let seconds = r.timeline.stretch_ns as f64 / 1e9;
    let curve = |name: String, of: &[u64]| {
        let point = |(i, bytes): (usize, &u64)| {
            let mib = *bytes as f64 / seconds / f64::from(1 << 20);
            ((i as f64 + 0.5) * seconds, mib)
        };
        let points = of.iter().enumerate().map(point).collect();
        Curve { name, points }
    };
    let causes = r.causes.iter().zip(&r.timeline.host_bytes);
    let causes = causes
        .filter(|(cause, _)| cause.host_bytes > 0)
        .take(MOST_CURVES);
    let mut curves: Vec<Curve> = causes
        .map(|(cause, of)| curve(cause.name.clone(), of))
        .collect();
    if curves.is_empty() {
        return String::new();
    }
    let gc = r.timeline.gc_bytes.first();
    curves.extend(gc.map(|of| curve(format!("moved by gc of {}", r.device.profile), of)));
    let lines = Lines {
        x: "seconds of the recording",
        y: "MiB/s",
        scale: Scale::Linear,
        y_scale: Scale::Linear,
        curves,
    };
    let note = format!(
        "Each point is {seconds:.3} s of wall-clock time of the recorded program. Blocks are counted \
         whole. Garbage collection is what the simulated drive moved for the writes of that time."
    );
    lines.picture().figure("Bytes by cause over time") + &sentences(&[note])
}
