//! What is read-only under `--confine`: state, config, rules, schemas, settings in which hooks stand,
//! what git does not show, and checkrein itself.

use std::io;
use std::path::{Path, PathBuf};

use checkrein_runtime::config::ConfigWithNamedFiles;
use checkrein_runtime::whole;

use super::loans::Placeholder;
use checkrein_verifiers::private_file::write_private_file;

use crate::guarded;
use crate::locate::{self, Located};

/// One guarded path.
#[derive(Debug, Clone)]
pub(super) struct Guard {
    pub(super) path: PathBuf,
    missing: Missing,
    /// Agents write into it; it only has to be there, for what is guarded in it.
    pub(super) open: bool,
    /// The folder that it is in is made as well, should it be missing.
    within: bool,
}

/// What to do where it is missing.
#[derive(Debug, Clone, Copy)]
enum Missing {
    /// Nothing can be done with it then.
    Leave,
    /// An empty folder stands there.
    Folder,
    /// A file with this text stands there.
    File(&'static str),
}

impl Guard {
    fn new(path: PathBuf, missing: Missing) -> Self {
        Self {
            path,
            missing,
            open: false,
            within: false,
        }
    }

    /// What stands there for the time of a run, should it be missing.
    pub(super) fn placeholder(&self) -> Option<Placeholder> {
        let text = match self.missing {
            Missing::Leave => return None,
            Missing::Folder => None,
            Missing::File(text) => Some(text.to_owned()),
        };
        // Below a folder that is missing nothing is needed: that folder stands for it.
        let parent = self.path.parent()?;
        (parent.is_dir() || self.within).then(|| Placeholder {
            path: self.path.clone(),
            text,
        })
    }
}

/// All of it.
pub(super) fn guarded(located: &Located, state: &Path) -> Vec<Guard> {
    let mut found = vec![Guard::new(state.to_owned(), Missing::Leave)];
    let root = &located.place.root;
    let config = located
        .repo
        .clone()
        .unwrap_or_else(|| root.join(locate::CONFIG));
    found.push(Guard::new(config, Missing::File("")));
    found.extend(named(located).map(|named| Guard::new(named, Missing::Leave)));
    let own = located.person.as_deref().and_then(Path::parent);
    found.extend(own.map(|folder| Guard::new(folder.to_owned(), Missing::Leave)));

    let here = std::env::current_dir().ok();
    for folder in here.iter().chain([root, &located.top]) {
        let agents = folder.join(".claude");
        if agents.is_dir() {
            found.extend(CLAUDE_CODE.map(|(name, text)| Guard::new(agents.join(name), text)));
        } else {
            found.push(Guard::new(agents, Missing::Folder));
        }
        found.push(Guard::new(folder.join(".codex"), Missing::Folder));
    }
    found.extend(own_folder("CLAUDE_CONFIG_DIR", ".claude", &CLAUDE_CODE));
    found.extend(own_folder("CODEX_HOME", ".codex", &CODEX));
    for managed in ["/etc/claude-code", "/etc/codex"] {
        found.push(Guard::new(PathBuf::from(managed), Missing::Leave));
    }
    if let Ok(ourselves) = std::env::current_exe() {
        found.push(Guard::new(ourselves, Missing::Leave));
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    found.dedup_by(|one, other| one.path == other.path);
    found
}

/// Rules and schemas that configs name.
fn named(located: &Located) -> impl Iterator<Item = PathBuf> {
    let configs = [located.repo.as_deref(), located.person.as_deref()];
    let gathered = configs.into_iter().flatten().filter_map(guarded::gathered);
    let names = |gathered: ConfigWithNamedFiles| {
        let named: Vec<PathBuf> = gathered
            .files_named_by_config()
            .map(|named| named.name.clone())
            .collect();
        named
    };
    gathered.flat_map(names)
}

/// Settings in Claude Code's folder, of a repo or of a person.
const CLAUDE_CODE: [(&str, Missing); 2] = [
    ("settings.json", Missing::File("{}\n")),
    ("settings.local.json", Missing::File("{}\n")),
];

/// Settings in a person's folder of Codex.
const CODEX: [(&str, Missing); 3] = [
    ("config.toml", Missing::File("")),
    ("hooks.json", Missing::File("{}\n")),
    ("rules", Missing::Folder),
];

/// A person's folder of an agent, which the agent makes for itself if it is not there.
fn own_folder(variable: &str, usual: &str, settings: &[(&str, Missing)]) -> Vec<Guard> {
    let there = |folder: &PathBuf| folder.is_dir() || folder.parent().is_some_and(Path::is_dir);
    let Some(folder) = locate::agent_folder(variable, usual).filter(there) else {
        return Vec::new();
    };
    let mut found: Vec<Guard> = settings
        .iter()
        .map(|(name, missing)| Guard {
            within: true,
            ..Guard::new(folder.join(name), *missing)
        })
        .collect();
    found.push(Guard {
        open: true,
        ..Guard::new(folder, Missing::Folder)
    });
    found
}

/// Guarded paths that are reached through a symbolic link: only what it points to can be made
/// read-only.
pub(super) fn links(guarded: &[Guard]) -> impl Iterator<Item = &Path> {
    let is_link = |path: &Path| {
        path.symlink_metadata()
            .is_ok_and(|meta| meta.file_type().is_symlink())
    };
    guarded
        .iter()
        .map(|guard| guard.path.as_path())
        .filter(move |path| is_link(path))
}

/// What git leaves out: the repo's own list, read-only, and in it, for who is inside, what is
/// only lent. Copy and place; none without a repo.
pub(super) fn exclude(
    located: &Located,
    lent: &[Placeholder],
    folder: &Path,
) -> io::Result<Option<(PathBuf, PathBuf)>> {
    let Some(info) = locate::git_folder(&located.top).map(|git| git.join("info")) else {
        return Ok(None);
    };
    let Ok(place) = info.join("exclude").canonicalize() else {
        return Ok(None);
    };
    let Some(mut text) = whole::read_limited_text_file(&place, whole::MAX_CONFIG_BYTES)? else {
        return Ok(None);
    };
    for placeholder in lent {
        if let Ok(below) = placeholder.path.strip_prefix(&located.top) {
            text.push_str(&format!("\n/{}", below.display()));
        }
    }
    text.push('\n');
    let copy = folder.join("exclude");
    write_private_file(&copy, text.as_bytes())?;
    Ok(Some((copy, place)))
}
