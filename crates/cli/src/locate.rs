//! Finds config files, the repo and the state folder. Reads the environment and hands
//! text to `runtime::config`, which looks for nothing itself.

use std::collections::BTreeMap;
use std::env;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use checkrein_core::digest::Digest;
use checkrein_runtime::config::{
    self, CompiledPolicy, ConfigError, ConfigSource, PolicySources, ProfileChoice,
    RequestedConfigProfile, TaskDriver,
};
use checkrein_runtime::{ConfigHeldDespiteEdit, RealSystem, TreeAndStateFolder, held, whole};

use crate::{guarded, sources};

/// The config's file name.
pub(crate) const CONFIG: &str = "checkrein.toml";

/// Where we are.
#[derive(Debug, Clone)]
pub(crate) struct Located {
    /// The tree that is judged.
    pub(crate) place: TreeAndStateFolder,
    /// The repo's config. Read only when a policy is compiled: a sealed session never does.
    pub(crate) repo: Option<PathBuf>,
    /// The person's own.
    pub(crate) person: Option<PathBuf>,
    /// Top of the checkout; without git the folder itself.
    pub(crate) top: PathBuf,
    /// The folder that was looked from.
    pub(crate) from: PathBuf,
    /// Nothing of the repo counts until a person has approved it.
    pub(crate) require_trust: bool,
    /// Which profile is asked for.
    profile: Wanted,
}

/// A profile by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Wanted {
    Plain,
    Named(String),
    IfThere(String),
}

/// What was said on the command line about where things are.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Given<'a> {
    /// The state folder.
    pub(crate) state: Option<&'a Path>,
    /// The profile.
    pub(crate) profile: Option<&'a str>,
    /// Only arguments count, and the account's own folder: the environment is the agent's, and
    /// a clone's own agent settings can set it.
    pub(crate) require_trust: bool,
}

impl Located {
    /// What goes on here although it was edited.
    pub(crate) fn held(&self) -> io::Result<Option<ConfigHeldDespiteEdit>> {
        held::read_held_config(&self.place.state, &self.place.root)
    }

    /// The same for who begins here, which may be in a folder whose config was taken away.
    pub(crate) fn held_nearest(&self) -> io::Result<Option<ConfigHeldDespiteEdit>> {
        held::nearest_config_held_despite_edit(&self.place.state, &self.from, &self.place.root)
    }

    /// What is held cannot be read, or not be written.
    pub(crate) fn kept(&self, source: io::Error) -> ConfigError {
        ConfigError::StateFile {
            name: self.place.state.join("held.json"),
            source,
        }
    }

    /// Lets go of it.
    pub(crate) fn let_go(&self) -> io::Result<()> {
        held::remove_configs_held_despite_edit(&self.place.state, &self.from, &self.place.root)
    }

    /// Under the profile that a session was sealed with, whatever is asked for here.
    pub(crate) fn under(&self, profile: &RequestedConfigProfile) -> Self {
        Self {
            profile: match profile {
                RequestedConfigProfile::Plain => Wanted::Plain,
                RequestedConfigProfile::For(name) => Wanted::IfThere(name.clone()),
            },
            ..self.clone()
        }
    }

    /// For who is judged in this folder.
    pub(crate) fn at(&self, root: &Path) -> Self {
        let config = Some(root.join(CONFIG)).filter(|file| whole::is_path_present(file));
        let mut place = self.place.clone();
        place.root = root.to_owned();
        Self {
            place,
            repo: config,
            top: git_top(root).unwrap_or(root).to_owned(),
            ..self.clone()
        }
    }

    /// Where a session that begins here is judged: where the nearest config lies, or lay before
    /// it was taken away while a task was open.
    pub(crate) fn settled(self) -> Result<Self, ConfigError> {
        match self.held_nearest().map_err(|source| self.kept(source))? {
            Some(held) if held.root != self.place.root => Ok(self.at(&held.root)),
            _ => Ok(self),
        }
    }

    /// Compiles the policy that a session beginning here is sealed with: from the texts that
    /// are held, if any are, and under `require_trust` from nothing that is not approved.
    pub(crate) fn compile(&self, driver: TaskDriver) -> Result<CompiledPolicy, ConfigError> {
        let sources = sources::in_force(self)?;
        // A mistake in what was edited is told, although older texts go on.
        if let Some(edited) = &sources.edited {
            self.unguarded(edited, driver)?;
        }
        let mut compiled = self.compile_from(&sources.sources, driver)?;
        compiled.warnings.extend(sources.notes);
        Ok(compiled)
    }

    /// The same from these texts, whatever is held or approved.
    pub(crate) fn compile_from(
        &self,
        sources: &PolicySources,
        driver: TaskDriver,
    ) -> Result<CompiledPolicy, ConfigError> {
        let mut compiled = self.unguarded(sources, driver)?;
        config::protect_paths_in_policy(&mut compiled.policy, guarded::protected(self, sources));
        config::set_policy_root(&mut compiled.policy, &self.place.root);
        Ok(compiled)
    }

    /// The same without the paths of this machine, so that it is the same on every one.
    pub(crate) fn unguarded(
        &self,
        sources: &PolicySources,
        driver: TaskDriver,
    ) -> Result<CompiledPolicy, ConfigError> {
        let (repo, person) = (sources.repo.as_ref(), sources.person.as_ref());
        config::compile_config_bundles(repo, person, driver, self.profile())
    }

    /// Name and text of the rules files that would be compiled.
    pub(crate) fn rules_files(
        &self,
        sources: &PolicySources,
    ) -> Result<Vec<(String, String)>, ConfigError> {
        let (repo, person) = (sources.repo.as_ref(), sources.person.as_ref());
        config::rules_file_texts(repo, person, self.profile())
    }

    fn profile(&self) -> ProfileChoice<'_> {
        match &self.profile {
            Wanted::Plain => ProfileChoice::Plain,
            Wanted::Named(name) => ProfileChoice::Named(name),
            Wanted::IfThere(name) => ProfileChoice::IfThere(name),
        }
    }

    /// The same under this profile, whatever was asked for.
    pub(crate) fn compile_plain(
        &self,
        sources: &PolicySources,
        profile: Option<&str>,
        driver: TaskDriver,
    ) -> Result<CompiledPolicy, ConfigError> {
        let profile = profile.map_or(ProfileChoice::Plain, ProfileChoice::Named);
        let (repo, person) = (sources.repo.as_ref(), sources.person.as_ref());
        config::compile_config_bundles(repo, person, driver, profile)
    }

    /// Which profile a session that begins here is sealed with.
    pub(crate) fn asked(&self) -> RequestedConfigProfile {
        self.profile().into()
    }

    /// What is held here, compiled, if it may count.
    pub(crate) fn compile_held(&self) -> Option<CompiledPolicy> {
        let held = self.held().ok().flatten()?;
        if !sources::may_count(self, &held.sources) {
            return None;
        }
        self.compile_from(&held.sources, TaskDriver::Hook).ok()
    }

    /// Without git only the folder itself counts; a config further up is passed over.
    pub(crate) fn passed_over(&self) -> Option<PathBuf> {
        let no_git = !self.top.join(".git").exists();
        let mut above = self.top.ancestors().skip(1).filter(|_| no_git);
        above
            .find(|folder| folder.join(CONFIG).is_file())
            .map(Path::to_owned)
    }

    /// Where the config is from the top of the checkout on: `.` if it is there.
    pub(crate) fn below_top(&self) -> String {
        match self.place.root.strip_prefix(&self.top) {
            Ok(below) if below.as_os_str().is_empty() => ".".to_owned(),
            Ok(below) => below.display().to_string(),
            Err(_) => self.place.root.display().to_string(),
        }
    }
}

/// Looks from `from` upwards. `state` overrides the state folder.
pub(crate) fn locate(from: &Path, state: Option<&Path>) -> Located {
    let folder = state.map_or_else(usual_state_folder, absolute);
    located(from, &folder, Given::default())
}

/// The same under this profile, if one is named.
pub(crate) fn locate_under(from: &Path, profile: Option<&str>) -> Located {
    let given = Given {
        profile,
        ..Given::default()
    };
    located(from, &usual_state_folder(), given)
}

/// The same with all that was said to a hook.
pub(crate) fn locate_given(from: &Path, given: Given<'_>) -> Result<Located, String> {
    Ok(located(from, &state_folder(given)?, given))
}

fn located(from: &Path, state: &Path, given: Given<'_>) -> Located {
    let from = from.canonicalize().unwrap_or_else(|_| from.to_owned());
    let git = git_top(&from);
    // Without a repo only the folder itself counts: what lies above may be anybody's.
    let top = git.unwrap_or(&from);
    let config = from
        .ancestors()
        .take_while(|folder| folder.starts_with(top))
        .map(|folder| folder.join(CONFIG))
        // Also what is no file: a pipe in its place, or a link that leads nowhere, is a mistake to tell
        // and no missing config.
        .find(|file| whole::is_path_present(file));
    let root = config
        .as_deref()
        .and_then(Path::parent)
        .or(git)
        .unwrap_or(&from)
        .to_owned();
    let repo_id = repo_id(git.unwrap_or(&root));
    let place = TreeAndStateFolder {
        root,
        state: state.join(repo_id),
        env: Arc::new(env::vars_os().collect::<BTreeMap<_, _>>()),
        // A clone's agent settings can set a hook's environment.
        trusts_addresses: !given.require_trust,
        system: Arc::new(RealSystem),
    };
    let folder = match given.require_trust {
        true => account_home().map(|home| home.join(".config")),
        false => config_folder(),
    };
    Located {
        place,
        repo: config,
        person: folder.map(|folder| folder.join("checkrein").join(CONFIG)),
        top: top.to_owned(),
        from: from.clone(),
        require_trust: given.require_trust,
        profile: wanted(given),
    }
}

/// Top of the checkout that a folder is in.
fn git_top(folder: &Path) -> Option<&Path> {
    folder
        .ancestors()
        .find(|folder| folder.join(".git").exists())
}

fn wanted(given: Given<'_>) -> Wanted {
    let said = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
    if let Some(name) = given.profile {
        return Wanted::Named(name.to_owned());
    }
    if given.require_trust {
        return Wanted::Plain;
    }
    if let Some(name) = said("CHECKREIN_PROFILE") {
        return Wanted::Named(name);
    }
    match said("CI").as_deref() {
        None | Some("false" | "0") => Wanted::Plain,
        Some(_) => Wanted::IfThere("ci".to_owned()),
    }
}

pub(crate) fn read(file: &Path) -> Result<Option<ConfigSource>, ConfigError> {
    let text = whole::read_limited_text_file(file, whole::MAX_CONFIG_BYTES).map_err(|source| {
        ConfigError::Unreadable {
            name: file.to_owned(),
            source,
        }
    })?;
    Ok(text.map(|text| ConfigSource {
        name: file.to_owned(),
        text,
    }))
}

/// The folder in which git keeps what all worktrees of a repo share.
pub(crate) fn git_folder(top: &Path) -> Option<PathBuf> {
    let dot_git = top.join(".git");
    match pointed_to(top) {
        Some(folder) => match pointer(&folder.join("commondir")) {
            Some(common) => Some(folder.join(common.trim())),
            None => Some(folder),
        },
        None => dot_git.is_dir().then_some(dot_git),
    }
}

/// Where the `.git` of a linked worktree or submodule points to.
fn pointed_to(top: &Path) -> Option<PathBuf> {
    let pointer = pointer(&top.join(".git"))?;
    let folder = pointer.trim().strip_prefix("gitdir: ")?;
    Some(top.join(folder))
}

/// The text of a file of git's that names a folder.
fn pointer(file: &Path) -> Option<String> {
    whole::read_limited_text_file(file, whole::MAX_SMALL_BYTES).ok()?
}

/// Whether the repo that this linked worktree points to knows of it: anybody can point.
pub(crate) fn is_linked_worktree(top: &Path) -> bool {
    let known = pointed_to(top)
        .and_then(|folder| pointer(&folder.join("gitdir")))
        .and_then(|back| Path::new(back.trim()).canonicalize().ok());
    known.is_some() && known == top.join(".git").canonicalize().ok()
}

/// This place with each state folder, other than its own, that this folder and those above have
/// or had: as a repo, and without git.
pub(crate) fn with_states_above(located: &Located) -> Vec<Located> {
    let Some(all) = located.place.state.parent() else {
        return Vec::new();
    };
    let mut ids = Vec::new();
    for folder in located.from.ancestors() {
        let repo = git_folder(folder).unwrap_or_else(|| folder.join(".git"));
        ids.push(id_of(repo));
        ids.push(id_of(folder.to_owned()));
    }
    let states = ids.into_iter().map(|id| all.join(id));
    let others = states.filter(|state| *state != located.place.state && state.is_dir());
    let with = |state| {
        let mut above = located.clone();
        above.place.state = state;
        above
    };
    others.map(with).collect()
}

/// All worktrees of a repo share one id: that of its common git folder.
fn repo_id(top: &Path) -> String {
    id_of(git_folder(top).unwrap_or_else(|| top.to_owned()))
}

fn id_of(identity: PathBuf) -> String {
    let identity = identity.canonicalize().unwrap_or(identity);
    let mut id = Digest::hash_bytes(identity.as_os_str().as_encoded_bytes()).to_hex();
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
pub(crate) fn state_folder(given: Given<'_>) -> Result<PathBuf, String> {
    match given.state {
        Some(folder) => Ok(absolute(folder)),
        None if given.require_trust => {
            let home = account_home().ok_or(
                "under --require-trust the state folder is the account's own, and this account has no folder in /etc/passwd: name one in the hook's command, with --state DIR",
            )?;
            Ok(home.join(".local").join("state").join("checkrein"))
        }
        None => Ok(usual_state_folder()),
    }
}

fn absolute(folder: &Path) -> PathBuf {
    std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned())
}

/// The state folder of all repos as the environment names it.
pub(crate) fn usual_state_folder() -> PathBuf {
    let named = |name: &str| {
        env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let folder = named("CHECKREIN_STATE")
        .or_else(|| named("XDG_STATE_HOME").map(|folder| folder.join("checkrein")))
        .or_else(|| named("LOCALAPPDATA").map(|folder| folder.join("checkrein")))
        .or_else(|| home().map(|home| home.join(".local").join("state").join("checkrein")))
        .unwrap_or_else(|| env::temp_dir().join("checkrein-state"));
    absolute(&folder)
}

/// For what may be thrown away; not the system's folder for temporary files.
pub(crate) fn cache_folder() -> PathBuf {
    let named = |name: &str| {
        env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    named("XDG_CACHE_HOME")
        .or_else(|| named("LOCALAPPDATA"))
        .or_else(|| env::home_dir().map(|home| home.join(".cache")))
        .unwrap_or_else(env::temp_dir)
        .join("checkrein")
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
        return account_home();
    }
    env::home_dir()
}

/// A person's folder of an agent: what this variable names, or the usual one in their own.
pub(crate) fn agent_folder(variable: &str, usual: &str) -> Option<PathBuf> {
    env::var_os(variable)
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)
        .or_else(|| home().map(|home| home.join(usual)))
}

/// The person's folder by their account, whatever the environment says. `None` where only the
/// environment tells: there `--require-trust` needs `--state`.
pub(crate) fn account_home() -> Option<PathBuf> {
    #[cfg(target_os = "linux")]
    {
        use std::os::unix::fs::MetadataExt as _;
        let me = std::fs::metadata("/proc/self").ok()?.uid().to_string();
        let users = std::fs::read_to_string("/etc/passwd").ok()?;
        let home = users.lines().find_map(|line| {
            let fields: Vec<&str> = line.split(':').collect();
            (fields.get(2) == Some(&me.as_str())).then(|| fields.get(5).map(PathBuf::from))?
        });
        // An empty one would be a folder of the tree that is judged.
        home.filter(|home| home.is_absolute())
    }
    #[cfg(not(target_os = "linux"))]
    None
}
