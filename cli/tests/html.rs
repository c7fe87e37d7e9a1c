//! The pages of `--html` in a browser, and the command on each page that repeats the run.
//!
//! Screenshots of all pages are kept in a folder. The first test prints its path on stderr.

#[path = "support/browser.rs"]
mod browser;
mod support;

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use browser::View;
use serde_json::Value;
use support::{ok, treering, words};

const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../traces/samples/zipf.trz");
const PROBE: &str = include_str!("support/probe.js");

const VIEWS: [View; 4] = [
    View {
        width: 1200,
        dark: false,
    },
    View {
        width: 1200,
        dark: true,
    },
    View {
        width: 360,
        dark: false,
    },
    View {
        width: 360,
        dark: true,
    },
];

/// The folder of the screenshots.
fn pictures() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pages");
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

/// A page that contains another in a frame, because browser windows cannot be as narrow as a phone.
/// It shows the results of the probe script for the framed page.
fn frame(page: &Path, width: u32) -> String {
    let name = page.file_name().expect("a name").to_string_lossy();
    format!(
        "<!doctype html><meta name=\"color-scheme\" content=\"light dark\"><body style=\"margin:0\">\
         <iframe src=\"{name}\" style=\"border:0;width:{width}px;height:6000px\"></iframe><script>\
         addEventListener('message', function (e) {{ var answer = document.createElement('script'); \
         answer.type = 'application/json'; answer.id = 'answer'; answer.textContent = e.data; \
         document.body.appendChild(answer); }});</script></body>"
    )
}

/// The results of the probe script for a page in this view.
fn probed(browser: &Path, page: &Path, view: View) -> Value {
    // A request by the page would show up as a connection here.
    let server = TcpListener::bind("127.0.0.1:0").expect("a port");
    server
        .set_nonblocking(true)
        .expect("a non-blocking listener");
    let host = server.local_addr().expect("an address").to_string();
    let text = std::fs::read_to_string(page).expect("a page");
    let probe = PROBE.replace("HOST", &host);
    let with_probe = text.replace("</body>", &format!("<script>{probe}</script></body>"));
    let name = page.file_stem().expect("a name").to_string_lossy();
    let scheme = if view.dark { "dark" } else { "light" };
    let name = format!("{name}-{}-{scheme}", view.width);
    let folder = page.parent().expect("a folder");
    let probed = folder.join(format!("{name}.html"));
    std::fs::write(&probed, with_probe).expect("written");
    let framed = folder.join(format!("{name}-framed.html"));
    std::fs::write(&framed, frame(&probed, view.width)).expect("written");
    let picture = pictures().join(format!("{name}.png"));
    let dom = browser::open(browser, &framed, view, &picture);
    assert!(
        server.accept().is_err(),
        "{name} must not fetch anything, but connected to {host}"
    );
    let answer = dom.split("id=\"answer\">").nth(1);
    let answer = answer.and_then(|rest| rest.split("</script>").next());
    let answer = answer.unwrap_or_else(|| panic!("{name}: no answer in {dom}"));
    serde_json::from_str(answer).expect("JSON")
}

fn numbers(list: &Value) -> Vec<f64> {
    let list = list.as_array().expect("a list");
    list.iter().map(|n| n.as_f64().expect("a number")).collect()
}

/// The page fits its window, follows the reader's colour preference, and has readable text.
fn check_looks(name: &str, view: View, found: &Value) {
    assert_eq!(found["width"], view.width, "{name}");
    assert_eq!(found["overflow"], 0, "{name} scrolls: {}", found["out"]);
    assert_eq!(found["out"], serde_json::json!([]), "{name}, {view:?}");
    let (paper, ink) = if view.dark {
        ("rgb(21, 24, 28)", "rgb(232, 235, 239)")
    } else {
        ("rgb(255, 255, 255)", "rgb(27, 31, 36)")
    };
    assert_eq!(found["background"], paper, "{name}");
    assert_eq!(found["ink"], ink, "{name}");
    let smallest = found["smallest"].as_f64().expect("pixels");
    assert!(
        smallest >= 11.0,
        "{name}, {view:?}: text of {smallest} px is too small"
    );
}

/// Checks the legend, the values and sorting.
fn check_hands(name: &str, found: &Value) {
    let legends = found["legends"].as_array().expect("a list");
    assert!(!legends.is_empty(), "{name} has no legend");
    for legend in legends {
        let (before, off) = (numbers(&legend["before"]), numbers(&legend["off"]));
        assert!(before[1] > 0.0, "{name}: {legend}");
        assert_eq!(off, [before[0], 0.0], "{name}: {legend}");
        assert_eq!(legend["pressed"], "false", "{name}");
        assert_eq!(legend["after"], legend["before"], "{name}");
    }
    let said = |what: &str| {
        let text = found[what].as_str();
        text.unwrap_or_else(|| panic!("{name}: nothing {what}: {found}"))
    };
    // Select the second mark, by pointer and by keyboard. Each shows a number.
    assert_eq!(said("pointed"), said("next"), "{name}");
    assert_ne!(said("focused"), said("next"), "{name}");
    for what in ["pointed", "focused"] {
        let text = said(what);
        assert!(
            text.contains(|c: char| c.is_ascii_digit()),
            "{name}: {text}"
        );
    }
    assert_eq!(found["left"], true, "{name}");
    assert_eq!(found["tip_inside"], true, "{name}");
    assert_eq!(found["stops"], true, "{name}");
    let sorted = &found["sorted"];
    let mut expected = numbers(&sorted["given"]);
    assert_eq!(sorted["again"], sorted["given"], "{name}");
    expected.sort_by(f64::total_cmp);
    assert_eq!(numbers(&sorted["up"]), expected, "{name}");
    expected.reverse();
    assert_eq!(numbers(&sorted["down"]), expected, "{name}");
    assert_ne!(sorted["up"], sorted["down"], "{name}");
}

fn check_policy(name: &str, found: &Value) {
    assert_eq!(found["resources"], 0, "{name}");
    assert_eq!(found["refused_before"], 0, "{name}");
    assert_eq!(
        found["refused"], 2,
        "{name}: the content security policy is too permissive"
    );
}

fn check_in_browser(browser: &Path, page: &Path) {
    let name = page.display().to_string();
    for view in VIEWS {
        let found = probed(browser, page, view);
        check_looks(&name, view, &found);
        check_hands(&name, &found);
        check_policy(&name, &found);
    }
}

fn page_of(folder: &Path, name: &str, args: &[&str]) -> PathBuf {
    let page = folder.join(name);
    let html = page.to_str().expect("text");
    ok(folder, &[args, &["--html", html]].concat());
    page
}

#[test]
fn report_pages_work_in_a_browser_and_fetch_nothing() {
    let Some(browser) = browser::find() else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let replays: [(&str, &[&str]); 4] = [
        ("ssd.html", &["--timing", "--limit", "20k"]),
        ("csd.html", &words("--device csd --tree bminus --limit 20k")),
        ("pm.html", &words("--tree ccl --timing --limit 20k")),
        ("bf.html", &["--tree", "bf", "--limit", "20k"]),
    ];
    for (name, flags) in replays {
        let args = [&["replay", SAMPLE], flags].concat();
        check_in_browser(&browser, &page_of(folder.path(), name, &args));
    }
}

#[test]
fn the_layout_page_works_in_a_browser_and_fetches_nothing() {
    let Some(browser) = browser::find() else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let args = words("layout dense --records 5k --order sorted");
    check_in_browser(&browser, &page_of(folder.path(), "layout.html", &args));
}

#[test]
fn the_page_of_a_trace_works_in_a_browser_and_fetches_nothing() {
    let Some(browser) = browser::find() else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let args = ["trace", "info", SAMPLE];
    check_in_browser(&browser, &page_of(folder.path(), "trace.html", &args));
}

/// The page of a trace has the values of the document, as titles of marks and in tables.
#[test]
fn the_page_of_a_trace_shows_the_values_of_its_document() {
    let folder = tempfile::tempdir().expect("a folder");
    let (info, text) = {
        let args = ["trace", "info", SAMPLE, "--html", "trace.html"];
        report(folder.path(), &args)
    };
    let page = std::fs::read_to_string(folder.path().join("trace.html")).expect("a page");
    let (body, _) = page.split_once("<script>").expect("a script");
    assert!(unescaped(body).contains(text.trim_end()), "no text");
    for fetched in ["src=", "href=", "@import", "url(", "<link"] {
        assert!(!page.contains(fetched), "{fetched}");
    }
    let windows = info["windows"].as_array().expect("windows");
    assert_eq!(windows.len(), 24);
    for window in windows {
        let end = format!("data-v=\"{}\"", window["end_op"]);
        assert!(body.contains(&end), "no {window}");
    }
    for interval in ["reads", "writes", "overwrites"] {
        let mean = info["reuse_times"][interval]["mean"].as_f64();
        let cell = format!(">{:.1}</td>", mean.expect("a mean"));
        assert!(body.contains(&cell), "no {interval} {cell}");
    }
    let back = info["cache"]["points"][3]["written_back"].as_f64();
    let cell = format!(">{:.4}</td>", back.expect("writes"));
    assert!(body.contains(&cell), "no {cell}");
    let pages = &info["page_cache"]["points"][3];
    let (size, back) = (&pages["pages"], pages["written_back"].as_f64());
    let cell = format!(">{size}</td>");
    assert!(body.contains(&cell), "no {cell}");
    let cell = format!(">{:.4}</td>", back.expect("writes"));
    assert!(body.contains(&cell), "no {cell}");
    for title in ["<title>misses per access: ", "<title>accessed: "] {
        assert!(body.contains(title), "no {title}");
    }
}

/// Without scripts, marks have their values as titles, and every table is visible.
#[test]
fn pages_show_every_value_without_scripts() {
    let folder = tempfile::tempdir().expect("a folder");
    let args = ["replay", SAMPLE, "--limit", "20k", "--device", "femu"];
    let page = page_of(folder.path(), "page.html", &args);
    let page = std::fs::read_to_string(page).expect("a page");
    let (body, _) = page.split_once("<script>").expect("a script");
    for part in [
        "<title>measured, host page: ",
        "<title>after ",
        "% used: ",
        "time to P/E limit",
        "years",
        "<td>pe_limit</td><td>3000</td>",
        "<td>seed</td><td>0</td>",
        "<td>records</td><td>5,000</td>",
        "<td>tree</td><td>btree</td>",
        "<td>log-size</td>",
    ] {
        assert!(body.contains(part), "no {part}");
    }
    for fetched in ["src=", "href=", "@import", "url(", "<link"] {
        assert!(
            !page.contains(fetched),
            "the page must not contain {fetched}"
        );
    }
}

fn unescaped(text: &str) -> String {
    let entities = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#39;", "'"),
        ("&amp;", "&"),
    ];
    let each = entities.iter();
    each.fold(text.to_string(), |text, (entity, c)| {
        text.replace(entity, c)
    })
}

/// The command on a page, run unchanged by a shell, produces the same report.
#[test]
fn the_command_on_a_page_reproduces_its_report() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = "it's a \"trace\" of $HOME & <more>.trz";
    std::fs::copy(SAMPLE, folder.path().join(trace)).expect("a copy");
    let profile = ok(folder.path(), &["devices", "femu"]);
    std::fs::write(folder.path().join("my drive.toml"), profile).expect("written");
    let cases: [&[&str]; 3] = [
        &[
            "--device",
            "my drive.toml",
            "--cache",
            "20%",
            "--gc",
            "d-choices:3",
            "--seed",
            "7",
            "--warmup",
            "10%",
            "--daily",
            "1GiB",
        ],
        &[
            "--tree",
            "bminus",
            "--device",
            "csd",
            "--threshold",
            "1KiB",
            "--no-predict",
            "--durability",
            "commit",
            "--timing",
        ],
        &words("--tree lodge --t-node 4 --node-split double --clients 3 --eadr"),
    ];
    let binaries = Path::new(env!("CARGO_BIN_EXE_treering"))
        .parent()
        .expect("a folder");
    let path = std::env::var("PATH").expect("a path");
    for flags in cases {
        let args = [
            "replay",
            trace,
            "--limit",
            "15k",
            "--json",
            "first.json",
            "--html",
            "page.html",
        ];
        ok(folder.path(), &[&args, flags].concat());
        let page = std::fs::read_to_string(folder.path().join("page.html")).expect("a page");
        let command = page.split("<pre><code>").nth(1).expect("a command");
        let command = unescaped(command.split("</code>").next().expect("its end"));
        assert!(command.starts_with("treering replay ") && command.contains("--seed "));
        let status = Command::new("bash")
            .args(["-ec", &format!("{command} --json again.json")])
            .env("PATH", format!("{}:{path}", binaries.display()))
            .current_dir(folder.path())
            .stdout(std::process::Stdio::null())
            .status();
        assert!(status.expect("bash starts").success(), "{command}");
        let read = |name| std::fs::read(folder.path().join(name)).expect("a report");
        assert_eq!(read("first.json"), read("again.json"), "{command}");
    }
}

fn report(folder: &Path, args: &[&str]) -> (Value, String) {
    let text = ok(folder, &[args, &["--json", "report.json"]].concat());
    let json = std::fs::read(folder.join("report.json")).expect("a report");
    (serde_json::from_slice(&json).expect("JSON"), text)
}

/// Text, JSON and HTML state the lifetime of the drive, or that it is unknown.
#[test]
fn lifetime_is_reported_for_a_daily_volume_or_as_unknown() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let args = ["replay", SAMPLE, "--limit", "20k"];
    let (once, _) = report(folder, &args);
    let life = &once["lifetime"];
    let capacity = once["options"]["capacity"].as_f64().expect("bytes");
    assert_eq!(life["user_bytes_per_day"], capacity);
    assert_eq!(life["user_bytes_per_day_from"]["source"], "capacity");
    let host = &once["wa"]["host"]["total"];
    assert_eq!(&life["drive_writes_per_day"], host);
    // Lifetime = endurance divided by the bytes written per day.
    let number = |value: &Value| value.as_f64().expect("a number");
    let years = number(&life["drive_writes"]) / number(host) / 365.25;
    let said = number(&life["years_until_pe_limit"]);
    assert!((said / years - 1.0).abs() < 1e-9, "{life}");

    let (daily, text) = report(folder, &[&args[..], &["--daily", "1GiB"]].concat());
    let life = &daily["lifetime"];
    assert_eq!(life["user_bytes_per_day"], f64::from(1 << 30));
    let fewer = number(&life["years_until_pe_limit"]) * f64::from(1 << 30) / capacity;
    assert!((fewer / said - 1.0).abs() < 1e-9, "{life}");
    assert!(text.contains("1.0 GiB (--daily)"), "{text}");

    let profile = ok(folder, &["devices", "ssd"]);
    let kept = profile.lines().filter(|line| !line.starts_with("pe_limit"));
    let kept: Vec<_> = kept.collect();
    std::fs::write(folder.join("endless.toml"), kept.join("\n")).expect("written");
    for flags in [["--device", "endless.toml"], ["--tree", "ccl"]] {
        let (unknown, text) = report(folder, &[&args[..], &flags].concat());
        let life = &unknown["lifetime"];
        assert_eq!(life["years_until_pe_limit"], Value::Null);
        assert!(number(&life["drive_writes_per_day"]) > 0.0, "{life}");
        assert!(
            text.contains("unknown: the profile gives no P/E limit"),
            "{text}"
        );
    }
    let profile = ok(folder, &["devices", "pm"]);
    std::fs::write(
        folder.join("pm.toml"),
        format!("write_limit = 1000000\n{profile}"),
    )
    .expect("written");
    let (pm, _) = report(
        folder,
        &[&args[..], &["--tree", "ccl", "--device", "pm.toml"]].concat(),
    );
    assert!(number(&pm["lifetime"]["years_until_pe_limit"]) > 0.0);

    let zero = treering(folder, &[&args[..], &["--daily", "0"]].concat());
    assert_eq!(zero.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&zero.stderr).contains("expected a size above 0"));
}

/// If a trace has times, they determine the bytes written per day.
#[test]
fn times_in_the_trace_determine_the_daily_volume() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    // A put of one block every second.
    let lines: String = (0..2000)
        .map(|i| format!("{i},W,{},4096\n", i % 50 * 4096))
        .collect();
    std::fs::write(folder.join("puts.csv"), lines).expect("written");
    let columns = "time=1:s,op=2,offset=3:bytes,size=4:bytes";
    ok(
        folder,
        &[
            "import",
            "csv",
            "puts.csv",
            "--columns",
            columns,
            "-o",
            "puts.trz",
        ],
    );
    let (found, text) = report(folder, &["replay", "puts.trz", "--preload", "none"]);
    let life = &found["lifetime"];
    assert_eq!(life["user_bytes_per_day_from"]["source"], "trace", "{life}");
    assert_eq!(
        life["user_bytes_per_day_from"]["span_ns"],
        1_999_000_000_000_u64
    );
    let daily = found["user_bytes"].as_f64().expect("bytes") * 86_400.0 / 1999.0;
    let said = life["user_bytes_per_day"].as_f64().expect("bytes");
    assert!((said / daily - 1.0).abs() < 1e-9, "{life}");
    assert!(text.contains("the trace's times"), "{text}");
}
