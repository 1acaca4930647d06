//! Provides the programs of a run: the real agents (named by a variable, else the pinned package of
//! the registry), checkrein as this checkout builds it, and a PATH on which programs work without
//! the caller's home folder.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

/// Where an agent comes from.
#[derive(Debug)]
pub(super) struct AgentPackage {
    /// The environment variable that names the program.
    pub(super) variable: &'static str,
    /// The package, with `{os}` and `{arch}` in registry words.
    pub(super) name: &'static str,
    /// Where the program is in the unpacked package; `*` stands for one folder.
    pub(super) program: &'static str,
}

/// What every scenario needs.
#[derive(Debug)]
pub(super) struct ProbePrograms {
    pub(super) checkrein: PathBuf,
    /// PATH of agents, hooks and checks.
    pub(super) path: OsString,
}

impl ProbePrograms {
    /// `folder` gets a copy of checkrein, so that a build meanwhile changes nothing.
    pub(super) fn gather_probe_programs(folder: &Path) -> Result<Self, String> {
        let built = match env::var_os("CHECKREIN_BIN") {
            Some(named) => PathBuf::from(named),
            None => build_checkrein()?,
        };
        let checkrein = folder.join("checkrein");
        std::fs::copy(&built, &checkrein)
            .map_err(|error| format!("{}: {error}", built.display()))?;
        // The copy comes first: hooks as documented name checkrein without a path.
        let mut folders = vec![folder.to_owned()];
        // The real toolchains come before shims such as those of rustup. Shims look for their
        // settings in the home folder, and that of a scenario is empty.
        if let Some(sysroot) = run_program_for_output("rustc", &["--print", "sysroot"]) {
            folders.push(PathBuf::from(sysroot).join("bin"));
        }
        if let Some(python) =
            run_program_for_output("python3", &["-c", "import sys; print(sys.prefix)"])
        {
            folders.push(PathBuf::from(python).join("bin"));
        }
        folders.extend(env::split_paths(&env::var_os("PATH").unwrap_or_default()));
        let path = env::join_paths(folders).map_err(|error| error.to_string())?;
        Ok(Self { checkrein, path })
    }
}

fn run_program_for_output(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

fn build_checkrein() -> Result<PathBuf, String> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args([
            "build",
            "--quiet",
            "--package",
            "checkrein-cli",
            "--bin",
            "checkrein",
            "--message-format",
            "json",
        ])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("cargo build: {error}"))?;
    // Cargo's messages say where the executable is, whatever target directory is configured.
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| {
            message.pointer("/target/name").and_then(Value::as_str) == Some("checkrein")
        })
        .find_map(|message| message.get("executable")?.as_str().map(PathBuf::from))
        .ok_or_else(|| "cargo did not build checkrein".to_owned())
}

/// Creates and returns `${XDG_CACHE_HOME:-~/.cache}/checkrein-agents`. It is not below the folder
/// for temporary files, because Codex refuses to create its PATH helpers in a home folder there.
pub(super) fn agent_program_cache_folder() -> Result<PathBuf, String> {
    let named = env::var_os("XDG_CACHE_HOME")
        .filter(|value| !value.is_empty())
        .map(PathBuf::from);
    let folder = named
        .or_else(|| env::home_dir().map(|home| home.join(".cache")))
        .ok_or("neither XDG_CACHE_HOME nor a home folder is known")?
        .join("checkrein-agents");
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(folder)
}

/// Returns the program of an agent. Downloads the package if neither the variable nor the cache has
/// the program.
pub(super) fn find_or_download_agent_program(package: &AgentPackage) -> Result<PathBuf, String> {
    if let Some(named) = env::var_os(package.variable).filter(|value| !value.is_empty()) {
        let program = PathBuf::from(named);
        return if program.is_file() {
            Ok(program)
        } else {
            Err(format!(
                "{} names no file: {}",
                package.variable,
                program.display()
            ))
        };
    }
    // The packages are named after the platforms of Node.js.
    let os = if cfg!(target_os = "macos") {
        "darwin"
    } else {
        env::consts::OS
    };
    let arch = match env::consts::ARCH {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        other => other,
    };
    let name = package.name.replace("{os}", os).replace("{arch}", arch);
    // The package's name becomes the name of one folder. It includes the version, so a new pin does
    // not find the old program.
    let plain: String = name
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || c == '.' {
                c
            } else {
                '-'
            }
        })
        .collect();
    let folder = agent_program_cache_folder()?.join(plain);
    if let Some(program) = find_file_matching_path_glob(&folder, package.program) {
        return Ok(program);
    }
    eprintln!(
        "fetching {name}; {} would name a program that is there already",
        package.variable
    );
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    // `npm pack` only downloads the archive. It runs no install scripts.
    let packed = Command::new("npm")
        .args(["pack", "--silent", &name])
        .current_dir(&folder)
        .output()
        .map_err(|error| format!("npm pack {name}: {error}"))?;
    let archive = String::from_utf8_lossy(&packed.stdout).trim().to_owned();
    if !packed.status.success() || archive.is_empty() {
        return Err(format!(
            "npm pack {name}: {}",
            String::from_utf8_lossy(&packed.stderr).trim()
        ));
    }
    let unpacked = Command::new("tar")
        .arg("xzf")
        .arg(&archive)
        .current_dir(&folder)
        .status();
    if !unpacked.is_ok_and(|status| status.success()) {
        return Err(format!("{archive} could not be unpacked with tar"));
    }
    // The archive is hundreds of megabytes and of no further use.
    let _ = std::fs::remove_file(folder.join(&archive));
    find_file_matching_path_glob(&folder, package.program)
        .ok_or_else(|| format!("{name} has no {}", package.program))
}

/// Returns the file at a path below `folder` in which `*` stands for any one folder.
fn find_file_matching_path_glob(folder: &Path, pattern: &str) -> Option<PathBuf> {
    match pattern.split_once("/*/") {
        None => Some(folder.join(pattern)).filter(|file| file.is_file()),
        Some((head, rest)) => std::fs::read_dir(folder.join(head))
            .ok()?
            .filter_map(Result::ok)
            .find_map(|entry| find_file_matching_path_glob(&entry.path(), rest)),
    }
}
