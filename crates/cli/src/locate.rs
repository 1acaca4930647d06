//! Finds config files, the repo and the state folder. Reads the environment and hands
//! text to `runtime::config`, which looks for nothing itself.

use std::collections::BTreeMap;
use std::env;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use checkrein_core::digest::Digest;
use checkrein_runtime::Place;
use checkrein_runtime::config::{self, Compiled, ConfigError, Driver, Source};

/// The config's file name.
pub(crate) const CONFIG: &str = "checkrein.toml";

/// Where we are.
#[derive(Debug, Clone)]
pub(crate) struct Located {
    /// The tree that is judged.
    pub(crate) place: Place,
    /// The repo's config. Read only when a policy is compiled: a sealed session never does.
    pub(crate) repo: Option<PathBuf>,
    /// The person's own.
    pub(crate) person: Option<PathBuf>,
}

impl Located {
    /// Compiles the policy that a session beginning here is sealed with.
    pub(crate) fn compile(&self, driver: Driver) -> Result<Compiled, ConfigError> {
        let repo = self.repo.as_deref().map(read).transpose()?.flatten();
        let person = self.person.as_deref().map(read).transpose()?.flatten();
        config::compile(repo.as_ref(), person.as_ref(), driver)
    }
}

/// Looks from `from` upwards. `state` overrides the state folder.
pub(crate) fn locate(from: &Path, state: Option<&Path>) -> Located {
    let from = from.canonicalize().unwrap_or_else(|_| from.to_owned());
    let git = from.ancestors().find(|folder| folder.join(".git").exists());
    // Without a repo only the folder itself counts: what lies above may be anybody's.
    let top = git.unwrap_or(&from);
    let config = from
        .ancestors()
        .take_while(|folder| folder.starts_with(top))
        .map(|folder| folder.join(CONFIG))
        .find(|file| file.is_file());
    let root = config
        .as_deref()
        .and_then(Path::parent)
        .or(git)
        .unwrap_or(&from)
        .to_owned();
    let repo_id = repo_id(git.unwrap_or(&root));
    let place = Place {
        root,
        state: state_folder(state).join(repo_id),
        env: env::vars_os().collect::<BTreeMap<_, _>>(),
    };
    let person = config_folder().map(|folder| folder.join("checkrein").join(CONFIG));
    Located {
        place,
        repo: config,
        person,
    }
}

fn read(file: &Path) -> Result<Option<Source>, ConfigError> {
    match std::fs::read_to_string(file) {
        Ok(text) => Ok(Some(Source {
            name: file.to_owned(),
            text,
        })),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(error) => Err(ConfigError::Unreadable {
            name: file.to_owned(),
            source: error,
        }),
    }
}

/// All worktrees of a repo share one id: that of its common git folder.
fn repo_id(top: &Path) -> String {
    let dot_git = top.join(".git");
    let common = match std::fs::read_to_string(&dot_git) {
        Ok(pointer) => pointer
            .trim()
            .strip_prefix("gitdir: ")
            .map(|folder| top.join(folder))
            .map(
                |folder| match std::fs::read_to_string(folder.join("commondir")) {
                    Ok(common) => folder.join(common.trim()),
                    Err(_) => folder,
                },
            ),
        Err(_) => dot_git.is_dir().then_some(dot_git),
    };
    let identity = common.unwrap_or_else(|| top.to_owned());
    let identity = identity.canonicalize().unwrap_or(identity);
    let mut id = Digest::of(identity.as_os_str().as_encoded_bytes()).to_hex();
    id.truncate(16);
    let folder = if identity.ends_with(".git") {
        identity.parent()
    } else {
        Some(&*identity)
    };
    let name = folder
        .and_then(Path::file_name)
        .map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let readable: String = name
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_'))
        .take(32)
        .collect();
    format!("{readable}-{id}")
}

/// The state folder of all repos. Always absolute: agents change their folder.
pub(crate) fn state_folder(given: Option<&Path>) -> PathBuf {
    let folder = given.map_or_else(usual_state_folder, Path::to_owned);
    std::path::absolute(&folder).unwrap_or(folder)
}

fn usual_state_folder() -> PathBuf {
    let named = |name: &str| {
        env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    named("CHECKREIN_STATE")
        .or_else(|| named("XDG_STATE_HOME").map(|folder| folder.join("checkrein")))
        .or_else(|| named("LOCALAPPDATA").map(|folder| folder.join("checkrein")))
        .or_else(|| home().map(|home| home.join(".local").join("state").join("checkrein")))
        .unwrap_or_else(|| env::temp_dir().join("checkrein-state"))
}

fn config_folder() -> Option<PathBuf> {
    let named = |name: &str| {
        env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    named("XDG_CONFIG_HOME")
        .or_else(|| named("APPDATA"))
        .or_else(|| home().map(|home| home.join(".config")))
}

/// The person's folder. Linked statically, the C library must not be asked who they are: it
/// would load parts of itself that may be of another version.
pub(crate) fn home() -> Option<PathBuf> {
    #[cfg(all(target_os = "linux", target_feature = "crt-static"))]
    if env::var_os("HOME").is_none() {
        use std::os::unix::fs::MetadataExt as _;
        let me = std::fs::metadata("/proc/self").ok()?.uid().to_string();
        let users = std::fs::read_to_string("/etc/passwd").ok()?;
        return users.lines().find_map(|line| {
            let fields: Vec<&str> = line.split(':').collect();
            (fields.get(2) == Some(&me.as_str())).then(|| fields.get(5).map(PathBuf::from))?
        });
    }
    env::home_dir()
}
