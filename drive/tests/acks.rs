//! Lines written to `$TREERING_ACKS` are marks, in their order, before the write returns.

mod disk;

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use treering_drive::recording::{Event, InMemory};

fn lines(sink: &InMemory) -> Vec<String> {
    let events = sink.take().into_iter();
    let lines = events.map(|(event, _)| match event {
        Event::Mark { line } => String::from_utf8(line).expect("text"),
        other => panic!("expected a mark, found {other:?}"),
    });
    lines.collect()
}

fn can_mount() -> bool {
    let can = Path::new("/dev/fuse").exists();
    if !can {
        eprintln!("SKIPPED a test of acknowledgements: no /dev/fuse on this machine");
    }
    can
}

#[test]
fn each_line_is_a_mark_before_its_write_returns() {
    if !can_mount() {
        return;
    }
    let sink = Arc::new(InMemory::default());
    let acks = disk::acks(sink.clone());
    let mut file = OpenOptions::new()
        .append(true)
        .open(acks.path())
        .expect("open");
    for number in 0..100 {
        file.write_all(format!("commit {number}\n").as_bytes())
            .expect("room");
        assert_eq!(lines(&sink), [format!("commit {number}")]);
    }
    file.write_all(b"two\nlines, and a half").expect("room");
    assert_eq!(lines(&sink), ["two"]);
    file.write_all(b" one\n\n").expect("room");
    assert_eq!(lines(&sink), ["lines, and a half one", ""]);
    let dir = acks.path().parent().expect("a directory").to_owned();
    drop(file);
    drop(acks);
    assert!(!dir.exists());
}

#[test]
fn shells_and_several_writers_append() {
    if !can_mount() {
        return;
    }
    let sink = Arc::new(InMemory::default());
    let acks = disk::acks(sink.clone());
    let path = acks.path().display();
    let script = format!(
        "export A={path}; echo x >> $A; for w in 1 2 3 4; do \
         (for i in $(seq 50); do printf \"$w \"; printf \"$i\\n\"; done) >> $A & done; wait; \
         printf 'no end' >> $A; sleep 0.1; cat $A"
    );
    let read = disk::shell(Path::new("/"), &script);
    let marks = lines(&sink);
    assert_eq!(marks.len(), 202, "{marks:?}");
    assert_eq!((marks[0].as_str(), marks[201].as_str()), ("x", "no end"));
    for writer in 1..=4 {
        let prefix = format!("{writer} ");
        let own = marks
            .iter()
            .filter_map(|m| m.strip_prefix(&prefix))
            .map(str::parse::<u32>);
        let own: Vec<u32> = own.map(|n| n.expect("a number")).collect();
        assert_eq!(own, (1..=50).collect::<Vec<_>>(), "writer {writer}");
    }
    let all: usize = marks.iter().map(|m| m.len() + 1).sum::<usize>() - 1;
    assert_eq!(read.len(), all, "what is read back is what was written");
    fs::write(acks.path(), "from the beginning\n").expect("truncated");
    assert_eq!(
        fs::read_to_string(acks.path()).expect("read"),
        "from the beginning\n"
    );
    assert_eq!(lines(&sink), ["from the beginning"]);
}

#[test]
fn the_last_line_of_user_bytes_counts() {
    if !can_mount() {
        return;
    }
    let sink = Arc::new(InMemory::default());
    let acks = disk::acks(sink.clone());
    assert_eq!(acks.user_bytes(), None);
    fs::write(
        acks.path(),
        "user_bytes 5\nuser_bytes many\nuser_bytes 70\nuser_bytesx 9\n",
    )
    .expect("room");
    assert_eq!(acks.user_bytes(), Some(70));
    assert_eq!(lines(&sink).len(), 4);
}
