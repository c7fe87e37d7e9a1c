//! The page of a sweep: in a browser, by clicks, and as `treering serve` serves it.

#[path = "support/browser.rs"]
mod browser;
mod support;
#[path = "support/sweeps.rs"]
mod sweeps;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use browser::View;
use serde_json::Value;
use support::{ok, treering, words};
use sweeps::{place, rows, stderr};

const PROBE: &str = include_str!("support/results_probe.js");
const MANY: &str = include_str!("support/many_probe.js");

/// Sweeps four points, with a page.
fn swept(folder: &Path) {
    let line = "sweep z.trz --tree btree,bf --cache 5%,40% --out o --html page.html";
    ok(folder, &words(line));
}

/// What the probe finds on the page.
fn probed(browser: &Path, folder: &Path, dark: bool) -> Value {
    let page = std::fs::read_to_string(folder.join("page.html")).expect("a page");
    found(browser, folder, (&page, PROBE), dark)
}

/// What a script finds at the end of a page.
fn found(browser: &Path, folder: &Path, (page, script): (&str, &str), dark: bool) -> Value {
    let page = page.replace("</body>", &format!("<script>{script}</script></body>"));
    let probe = folder.join("probe.html");
    std::fs::write(&probe, page).expect("written");
    let view = View { width: 1000, dark };
    let dom = browser::open(browser, &probe, view, &folder.join("picture.png"));
    let found = dom
        .split_once(r#"<pre id="probe">"#)
        .expect("the probe ends")
        .1;
    let found = found
        .split_once("</pre>")
        .expect("text")
        .0
        .replace("&gt;", ">");
    let found = found.replace("&lt;", "<").replace("&amp;", "&");
    serde_json::from_str(&found).unwrap_or_else(|e| panic!("{e}: {found}"))
}

#[test]
fn a_page_answers_to_clicks_and_a_link_keeps_its_view() {
    let folder = place();
    let folder = folder.path();
    swept(folder);
    let Some(browser) = browser::find() else {
        return;
    };
    let found = probed(&browser, folder, false);
    assert_eq!(
        (&found["dots"], &found["rows"]),
        (&4.into(), &4.into()),
        "{found}"
    );
    assert_eq!(found["links"], 4, "{found}");
    assert_eq!(found["count"], "4 of 4 runs");
    // The keys go through the dots, and tell which one is chosen.
    assert_eq!(found["chart"], "plot");
    let walked: Vec<&str> = (found["walked"].as_array().expect("a list").iter())
        .map(|said| said.as_str().expect("text"))
        .collect();
    let [last, first, second, again, up] = walked[..] else {
        panic!("{found}");
    };
    assert!(last.contains("cache: 40%") && first.contains("cache: 5%"));
    assert!(first != second && again == first && up != first);
    assert_eq!((&found["chosen"], &found["tabs"]), (&1.into(), &0.into()));
    let opened = found["opened"][0].as_str().expect("an address");
    assert!(opened.starts_with("o/runs/") && folder.join(opened).is_file());
    assert!(
        found["front"].as_u64() >= Some(1) && found["line"].as_u64() >= Some(1),
        "{found}"
    );
    assert_eq!(found["facets"], 2, "{found}");
    let hash = found["hash"].as_str().expect("text");
    assert!(
        hash.contains("x=cache.hit_ratio") && hash.contains("lx=1"),
        "{hash}"
    );
    assert_eq!(found["filtered"], "2 of 4 runs", "{found}");
    assert_eq!(found["saved"], 2, "{found}");
    assert!(
        found["svg"]
            .as_str()
            .is_some_and(|text| text.starts_with("<svg")),
        "{found}"
    );
    assert_eq!(found["again"][1], "4 of 4 runs", "{found}");
    assert_eq!(
        found["wrong"], found["again"],
        "a link that names what is not there"
    );
    let kept = serde_json::json!(["cache.hit_ratio", true, "tree", true, false]);
    assert_eq!(found["kept"], kept);
    assert!(found["labels"] == true && found["names"] == true && found["focus"] == "y");
    assert_eq!(found["overflow"], 0, "{found}");
    let dark = probed(&browser, folder, true);
    assert_ne!(dark["background"], found["background"]);
}

/// Thousands of dots have no links of their own, which would take long to draw; a click and a hover
/// do the same.
#[test]
fn many_dots_answer_to_clicks_too() {
    let folder = place();
    let folder = folder.path();
    swept(folder);
    let Some(browser) = browser::find() else {
        return;
    };
    let page = std::fs::read_to_string(folder.join("page.html")).expect("a page");
    let (before, rest) = page.split_once(r#"id="data">"#).expect("the data");
    let (data, after) = rest.split_once("</script>").expect("their end");
    let mut data: Value = serde_json::from_str(data).expect("JSON");
    let rows = data["rows"].as_array().expect("rows").clone();
    data["rows"] = vec![rows; 500].concat().into();
    let page = format!(r#"{before}id="data">{data}</script>{after}"#);
    let found = found(&browser, folder, (&page, MANY), false);
    assert_eq!(
        (&found["dots"], &found["links"], &found["count"]),
        (&2000.into(), &0.into(), &"2000 of 2000 runs".into())
    );
    let opened = found["opened"].as_array().expect("addresses");
    assert_eq!(opened.len(), 1, "{found}");
    let opened = opened[0].as_str().expect("an address");
    assert!(opened.starts_with("o/runs/") && folder.join(opened).is_file());
    assert!(
        (found["tip"].as_str())
            .is_some_and(|tip| tip.contains("tree: ") && tip.contains("cache: ")),
        "{found}"
    );
}

#[test]
fn links_lead_to_reports_if_these_are_below_the_page() {
    let folder = place();
    let folder = folder.path();
    swept(folder);
    let page = std::fs::read_to_string(folder.join("page.html")).expect("a page");
    assert!(page.contains(r#""base":"o/""#));
    let run = &rows(&folder.join("o"))[0]["run"];
    assert!(page.contains(run) && folder.join(format!("o/runs/{run}.json")).is_file());
    std::fs::create_dir(folder.join("elsewhere")).expect("a folder");
    let line = "sweep z.trz --tree btree,bf --cache 5%,40% --out o --html elsewhere/page.html";
    ok(folder, &words(line));
    let page = std::fs::read_to_string(folder.join("elsewhere/page.html")).expect("a page");
    assert!(page.contains(r#""base":null"#));
    // The same study gives the same page.
    let first = std::fs::read(folder.join("page.html")).expect("a page");
    swept(folder);
    assert_eq!(
        std::fs::read(folder.join("page.html")).expect("a page"),
        first
    );
}

/// A server that is stopped at the end of the test.
struct Server {
    child: Child,
    port: u16,
}

impl Server {
    fn start(folder: &Path) -> Server {
        let mut child = Command::new(env!("CARGO_BIN_EXE_treering"))
            .args(["serve", "o", "--port", "0"])
            .current_dir(folder)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the command starts");
        let mut line = String::new();
        let out = child.stdout.take().expect("a pipe");
        BufReader::new(out).read_line(&mut line).expect("a line");
        let port = line.trim_end().trim_end_matches('/').rsplit(':').next();
        let port = port
            .and_then(|port| port.parse().ok())
            .unwrap_or_else(|| panic!("{line}"));
        Server { child, port }
    }

    /// The status and the body of an answer.
    fn get(&self, path: &str, host: &str) -> (String, Vec<u8>) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("a connection");
        let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("sent");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("an answer");
        let end = answer
            .windows(4)
            .position(|four| four == b"\r\n\r\n")
            .expect("a head");
        let head = String::from_utf8_lossy(&answer[..end]).into_owned();
        let status = head.split(' ').nth(1).expect("a status").to_owned();
        (status, answer.split_off(end + 4))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_folder_is_served_and_nothing_beside_its_results() {
    let folder = place();
    let folder = folder.path();
    swept(folder);
    std::fs::write(folder.join("secret.json"), "{}").expect("written");
    let server = Server::start(folder);
    let get = |path: &str| server.get(path, "localhost");
    let (status, page) = get("/");
    let page = String::from_utf8(page).expect("text");
    assert!(status == "200" && page.contains(r#""base":"/""#) && page.contains("replayed"));
    let run = &rows(&folder.join("o"))[0]["run"];
    let (status, report) = get(&format!("/runs/{run}.json"));
    let report: Value = serde_json::from_slice(&report).expect("JSON");
    assert!(
        status == "200"
            && report["schema"]
                .as_str()
                .unwrap()
                .starts_with("treering.replay/")
    );
    let (status, table) = get("/results.csv");
    let csv = std::fs::read(folder.join("o/results.csv")).expect("a table");
    assert_eq!((status.as_str(), table), ("200", csv));
    for path in [
        "/../secret.json",
        "/runs/../../secret.json",
        "/.lock",
        "/costs.csv",
        "/runs/",
    ] {
        assert_eq!(get(path).0, "404", "{path}");
    }
    assert_eq!(server.get("/", "example.org").0, "403");
}

#[test]
fn what_is_no_sweep_is_not_served() {
    let folder = place();
    let folder = folder.path();
    std::fs::create_dir(folder.join("o")).expect("a folder");
    for (text, expected) in [(None, "No such file"), (Some("a,b\n1,2\n"), "a column run")] {
        if let Some(text) = text {
            std::fs::write(folder.join("o/results.csv"), text).expect("written");
        }
        let output = treering(folder, &words("serve o --port 0"));
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(stderr(&output).contains(expected), "{}", stderr(&output));
    }
}
