//! `install [--root DIR]`: builds `checkrein` for speed and puts it into cargo's bin folder.

use std::env;
use std::path::PathBuf;
use std::process::ExitCode;

use crate::build::{self, BuildProfile};

/// Builds and installs the program.
pub(crate) fn build_and_install_checkrein(arguments: &[String]) -> Result<ExitCode, String> {
    let root = match arguments {
        [] => {
            cargo_home().ok_or("neither CARGO_HOME nor HOME is set; name a folder: --root DIR")?
        }
        [flag, folder] if flag == "--root" => PathBuf::from(folder),
        _ => return Err("usage: cargo xtask install [--root DIR]".to_owned()),
    };
    let built = build::build_checkrein_binary(BuildProfile::Static)?;
    let folder = root.join("bin");
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let place = folder.join(format!("checkrein{}", env::consts::EXE_SUFFIX));
    // A running program keeps its file, and a hook that starts meanwhile finds a whole one: the new
    // file is written beside the old one and renamed over it.
    let beside = folder.join(format!(".checkrein-{}", std::process::id()));
    std::fs::copy(&built, &beside)
        .and_then(|_| std::fs::rename(&beside, &place))
        .map_err(|error| format!("{}: {error}", place.display()))?;
    println!("installed {}", place.display());
    let on_path = env::var_os("PATH")
        .is_some_and(|path| env::split_paths(&path).any(|entry| entry == folder));
    if !on_path {
        println!(
            "{} is not on your PATH; add it, or name the program by its path",
            folder.display()
        );
    }
    Ok(ExitCode::SUCCESS)
}

fn cargo_home() -> Option<PathBuf> {
    env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| env::home_dir().map(|home| home.join(".cargo")))
}
