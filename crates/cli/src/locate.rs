//! Finds config files, the repo and the state folder. Reads the environment and hands
//! text to `runtime::config`, which looks for nothing itself.

use std::collections::BTreeMap;
use std::env;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use checkrein_core::digest::Digest;
use checkrein_runtime::config::{
    self, CompiledPolicy, ConfigError, NamedConfigText, PolicySourceTexts, ProfileRequest,
    RequestedConfigProfile, TaskDriverKind,
};
use checkrein_runtime::{
    ConfigHeldDespiteEdit, RealSystem, TreeAndStateFolder, durable_file, held_config,
};

use crate::{guarded_files, policy_sources};

/// The config's file name.
pub(crate) const CONFIG: &str = "checkrein.toml";

/// The result of the search: where a command works.
#[derive(Debug, Clone)]
pub(crate) struct ProjectLocation {
    /// The tree that is judged.
    pub(crate) place: TreeAndStateFolder,
    /// The repo's config. Read only when a policy is compiled: a sealed session never does.
    pub(crate) repo_config: Option<PathBuf>,
    /// The person's own.
    pub(crate) person_config: Option<PathBuf>,
    /// Top of the checkout; without git the folder itself.
    pub(crate) top: PathBuf,
    /// The folder that was looked from.
    pub(crate) start_folder: PathBuf,
    /// Nothing of the repo counts until a person has approved it (`--require-trust`).
    pub(crate) require_trust: bool,
    /// The profile that is asked for.
    profile: ConfigProfileChoice,
}

/// A profile, by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ConfigProfileChoice {
    Plain,
    Named(String),
    IfThere(String),
}

/// What the command line says about where things are.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct StateAndProfileArgs<'a> {
    /// The state folder.
    pub(crate) state: Option<&'a Path>,
    /// The profile.
    pub(crate) profile: Option<&'a str>,
    /// Only arguments and the account's own folder count: the environment is the agent's, and a
    /// clone's own agent settings can set it.
    pub(crate) require_trust: bool,
}

impl ProjectLocation {
    /// Returns the config that stays in force here although it was edited.
    pub(crate) fn config_held_despite_edit(&self) -> io::Result<Option<ConfigHeldDespiteEdit>> {
        held_config::read_config_held_despite_edit(&self.place.state, &self.place.root)
    }

    /// Returns the same for a session that begins here, which may be in a folder whose config was
    /// taken away.
    pub(crate) fn nearest_config_held_despite_edit(
        &self,
    ) -> io::Result<Option<ConfigHeldDespiteEdit>> {
        held_config::nearest_config_held_despite_edit(
            &self.place.state,
            &self.start_folder,
            &self.place.root,
        )
    }

    /// Returns the error that the held config cannot be read or written.
    pub(crate) fn held_config_io_error(&self, source: io::Error) -> ConfigError {
        ConfigError::StateFile {
            name: self.place.state.join("held.json"),
            source,
        }
    }

    /// Removes the held config.
    pub(crate) fn drop_config_held_despite_edit(&self) -> io::Result<()> {
        held_config::release_held_configs(&self.place.state, &self.start_folder, &self.place.root)
    }

    /// Returns this place under the profile that a session was sealed with, whatever is asked for
    /// here.
    pub(crate) fn location_with_sealed_profile(&self, profile: &RequestedConfigProfile) -> Self {
        Self {
            profile: match profile {
                RequestedConfigProfile::Plain => ConfigProfileChoice::Plain,
                RequestedConfigProfile::For(name) => ConfigProfileChoice::IfThere(name.clone()),
            },
            ..self.clone()
        }
    }

    /// Returns this place for a session that is judged in this folder.
    pub(crate) fn with_project_root(&self, root: &Path) -> Self {
        // The config is looked for in this folder only: a session stays with the folder that it was
        // sealed for.
        let config = Some(root.join(CONFIG)).filter(|file| durable_file::is_path_present(file));
        let mut place = self.place.clone();
        place.root = root.to_owned();
        Self {
            place,
            repo_config: config,
            top: git_checkout_top(root).unwrap_or(root).to_owned(),
            ..self.clone()
        }
    }

    /// Returns where a session that begins here is judged: where the nearest config lies, or lay
    /// before it was taken away while a task was open.
    pub(crate) fn location_for_new_session(self) -> Result<Self, ConfigError> {
        match self
            .nearest_config_held_despite_edit()
            .map_err(|source| self.held_config_io_error(source))?
        {
            Some(held) if held.root != self.place.root => Ok(self.with_project_root(&held.root)),
            _ => Ok(self),
        }
    }

    /// Compiles the policy that a session beginning here is sealed with: from the texts that are
    /// held, if there are any, and under `require_trust` only from what a person approved.
    pub(crate) fn compile_policy_for_new_session(
        &self,
        driver: TaskDriverKind,
    ) -> Result<CompiledPolicy, ConfigError> {
        let sources = policy_sources::effective_policy_sources(self)?;
        // A mistake in the edited texts is reported, although the older texts stay in force.
        if let Some(edited) = &sources.edited {
            self.compile_policy_sans_local_paths(edited, driver)?;
        }
        let mut compiled = self.compile_full_policy_from_sources(&sources.sources, driver)?;
        compiled.warnings.extend(sources.notes);
        Ok(compiled)
    }

    /// Compiles a policy from these texts, whatever is held or approved.
    pub(crate) fn compile_full_policy_from_sources(
        &self,
        sources: &PolicySourceTexts,
        driver: TaskDriverKind,
    ) -> Result<CompiledPolicy, ConfigError> {
        let mut compiled = self.compile_policy_sans_local_paths(sources, driver)?;
        // Paths come last: they differ between machines, and the policy without them has to be the
        // same on each.
        config::protect_paths_in_policy(
            &mut compiled.policy,
            guarded_files::paths_no_call_may_write(self, sources),
        );
        config::set_policy_root(&mut compiled.policy, &self.place.root);
        Ok(compiled)
    }

    /// Compiles a policy without the paths of this machine, so that it is the same on every one.
    pub(crate) fn compile_policy_sans_local_paths(
        &self,
        sources: &PolicySourceTexts,
        driver: TaskDriverKind,
    ) -> Result<CompiledPolicy, ConfigError> {
        let (repo, person) = (sources.repo.as_ref(), sources.person.as_ref());
        config::compile_gathered_configs(repo, person, driver, self.config_profile_choice())
    }

    /// Returns name and text of the rules files that would be compiled.
    pub(crate) fn rules_files_to_compile(
        &self,
        sources: &PolicySourceTexts,
    ) -> Result<Vec<(String, String)>, ConfigError> {
        let (repo, person) = (sources.repo.as_ref(), sources.person.as_ref());
        config::rules_file_texts(repo, person, self.config_profile_choice())
    }

    fn config_profile_choice(&self) -> ProfileRequest<'_> {
        match &self.profile {
            ConfigProfileChoice::Plain => ProfileRequest::Plain,
            ConfigProfileChoice::Named(name) => ProfileRequest::Named(name),
            ConfigProfileChoice::IfThere(name) => ProfileRequest::IfThere(name),
        }
    }

    /// Compiles a policy under this profile, whatever was asked for.
    pub(crate) fn compile_config_policy_under_profile(
        &self,
        sources: &PolicySourceTexts,
        profile: Option<&str>,
        driver: TaskDriverKind,
    ) -> Result<CompiledPolicy, ConfigError> {
        let profile = profile.map_or(ProfileRequest::Plain, ProfileRequest::Named);
        let (repo, person) = (sources.repo.as_ref(), sources.person.as_ref());
        config::compile_gathered_configs(repo, person, driver, profile)
    }

    /// Returns the profile that a session beginning here is sealed with.
    pub(crate) fn profile_for_new_session(&self) -> RequestedConfigProfile {
        self.config_profile_choice().into()
    }

    /// Compiles the held config, if it may count.
    pub(crate) fn compile_config_held_despite_edit(&self) -> Option<CompiledPolicy> {
        let held = self.config_held_despite_edit().ok().flatten()?;
        // Held texts need a person's approval as well (law 10).
        if !policy_sources::are_config_sources_trusted(self, &held.sources) {
            return None;
        }
        self.compile_full_policy_from_sources(&held.sources, TaskDriverKind::Hook)
            .ok()
    }

    /// Returns the folder of a config further up that is ignored: without git only the folder
    /// itself counts.
    pub(crate) fn unused_parent_config_folder(&self) -> Option<PathBuf> {
        let no_git = !self.top.join(".git").exists();
        let mut above = self.top.ancestors().skip(1).filter(|_| no_git);
        above
            .find(|folder| folder.join(CONFIG).is_file())
            .map(Path::to_owned)
    }

    /// Returns where the config is, from the top of the checkout on: `.` if it is there.
    pub(crate) fn project_root_relative_to_top(&self) -> String {
        match self.place.root.strip_prefix(&self.top) {
            Ok(below) if below.as_os_str().is_empty() => ".".to_owned(),
            Ok(below) => below.display().to_string(),
            Err(_) => self.place.root.display().to_string(),
        }
    }
}

/// Searches from `from` upwards. `state` overrides the state folder.
pub(crate) fn locate_project(from: &Path, state: Option<&Path>) -> ProjectLocation {
    let folder = state.map_or_else(default_state_folder, absolute_folder_path);
    locate_project_given_state_folder(from, &folder, StateAndProfileArgs::default())
}

/// Searches from `from` upwards, under this profile if one is named.
pub(crate) fn locate_project_with_profile(from: &Path, profile: Option<&str>) -> ProjectLocation {
    let given = StateAndProfileArgs {
        profile,
        ..StateAndProfileArgs::default()
    };
    locate_project_given_state_folder(from, &default_state_folder(), given)
}

/// Searches from `from` upwards with all that a hook's command line says.
pub(crate) fn locate_project_for_hook(
    from: &Path,
    given: StateAndProfileArgs<'_>,
) -> Result<ProjectLocation, String> {
    Ok(locate_project_given_state_folder(
        from,
        &state_folder(given)?,
        given,
    ))
}

fn locate_project_given_state_folder(
    from: &Path,
    state: &Path,
    given: StateAndProfileArgs<'_>,
) -> ProjectLocation {
    // Resolved first: a path through a link has other folders above it.
    let from = from.canonicalize().unwrap_or_else(|_| from.to_owned());
    let git = git_checkout_top(&from);
    // Without a repo only the folder itself counts: a config further up may be anybody's, for
    // example one that another user put into `/tmp`.
    let top = git.unwrap_or(&from);
    let config = from
        .ancestors()
        .take_while(|folder| folder.starts_with(top))
        .map(|folder| folder.join(CONFIG))
        // Also what is no file: a pipe in its place, or a link that leads nowhere, is a mistake to
        // report and no missing config.
        .find(|file| durable_file::is_path_present(file));
    // The folder of the config is the tree that is judged; without a config it is the whole
    // checkout.
    let root = config
        .as_deref()
        .and_then(Path::parent)
        .or(git)
        .unwrap_or(&from)
        .to_owned();
    // The state belongs to the repo and not to the config's folder, so that sub-projects and
    // worktrees share one store.
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
        true => person_home_by_account().map(|home| home.join(".config")),
        false => xdg_config_folder(),
    };
    ProjectLocation {
        place,
        repo_config: config,
        person_config: folder.map(|folder| folder.join("checkrein").join(CONFIG)),
        top: top.to_owned(),
        start_folder: from.clone(),
        require_trust: given.require_trust,
        profile: choose_profile(given),
    }
}

/// Returns the top of the checkout that a folder is in.
fn git_checkout_top(folder: &Path) -> Option<&Path> {
    folder
        .ancestors()
        .find(|folder| folder.join(".git").exists())
}

fn choose_profile(given: StateAndProfileArgs<'_>) -> ConfigProfileChoice {
    let said = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
    // The order is: argument, `CHECKREIN_PROFILE`, `CI`. Under `--require-trust` the variables do
    // not count, since the environment may be the agent's.
    if let Some(name) = given.profile {
        return ConfigProfileChoice::Named(name.to_owned());
    }
    if given.require_trust {
        return ConfigProfileChoice::Plain;
    }
    if let Some(name) = said("CHECKREIN_PROFILE") {
        return ConfigProfileChoice::Named(name);
    }
    match said("CI").as_deref() {
        None | Some("false" | "0") => ConfigProfileChoice::Plain,
        // A config without a `ci` profile is used as it is, since nobody asked for the profile by
        // name.
        Some(_) => ConfigProfileChoice::IfThere("ci".to_owned()),
    }
}

pub(crate) fn read_config_source(file: &Path) -> Result<Option<NamedConfigText>, ConfigError> {
    let text = durable_file::read_limited_text_file(file, durable_file::MAX_CONFIG_BYTES).map_err(
        |source| ConfigError::Unreadable {
            name: file.to_owned(),
            source,
        },
    )?;
    Ok(text.map(|text| NamedConfigText {
        name: file.to_owned(),
        text,
    }))
}

/// Returns the folder in which git keeps what all worktrees of a repo share.
pub(crate) fn git_common_dir(top: &Path) -> Option<PathBuf> {
    let dot_git = top.join(".git");
    match linked_git_dir(top) {
        Some(folder) => match read_git_pointer(&folder.join("commondir")) {
            // `commondir` is relative to the folder of the worktree, which `join` leaves alone if
            // it is absolute.
            Some(common) => Some(folder.join(common.trim())),
            None => Some(folder),
        },
        None => dot_git.is_dir().then_some(dot_git),
    }
}

/// Returns the folder that the `.git` file of a linked worktree or submodule points to.
fn linked_git_dir(top: &Path) -> Option<PathBuf> {
    let pointer = read_git_pointer(&top.join(".git"))?;
    let folder = pointer.trim().strip_prefix("gitdir: ")?;
    Some(top.join(folder))
}

/// Reads a file of git's that names a folder.
fn read_git_pointer(file: &Path) -> Option<String> {
    durable_file::read_limited_text_file(file, durable_file::MAX_SMALL_BYTES).ok()?
}

/// Returns whether the repo that this linked worktree points to knows of it: anybody can write a
/// pointer.
pub(crate) fn is_linked_worktree(top: &Path) -> bool {
    let known = linked_git_dir(top)
        .and_then(|folder| read_git_pointer(&folder.join("gitdir")))
        .and_then(|back| Path::new(back.trim()).canonicalize().ok());
    known.is_some() && known == top.join(".git").canonicalize().ok()
}

/// Returns this place with each state folder, other than its own, that this folder and those above
/// it have or had: as a repo, and without git.
pub(crate) fn ancestor_state_locations(located: &ProjectLocation) -> Vec<ProjectLocation> {
    let Some(all) = located.place.state.parent() else {
        return Vec::new();
    };
    let mut ids = Vec::new();
    for folder in located.start_folder.ancestors() {
        // A `.git` that was deleted still gives the id under which its state lies.
        let repo = git_common_dir(folder).unwrap_or_else(|| folder.join(".git"));
        ids.push(folder_id_from_path_digest(repo));
        ids.push(folder_id_from_path_digest(folder.to_owned()));
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

/// Returns the id of a repo. All its worktrees share the id of the common git folder.
fn repo_id(top: &Path) -> String {
    folder_id_from_path_digest(git_common_dir(top).unwrap_or_else(|| top.to_owned()))
}

fn folder_id_from_path_digest(identity: PathBuf) -> String {
    let identity = identity.canonicalize().unwrap_or(identity);
    // 16 hex digits of the path's digest make the name unique; the readable part is for people who
    // look into the folder.
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

/// Returns the state folder of all repos. It is always absolute, since agents change their folder.
pub(crate) fn state_folder(given: StateAndProfileArgs<'_>) -> Result<PathBuf, String> {
    match given.state {
        Some(folder) => Ok(absolute_folder_path(folder)),
        None if given.require_trust => {
            let home = person_home_by_account().ok_or(
                "under --require-trust the state folder is the account's own, and this account has no folder in /etc/passwd: name one in the hook's command, with --state DIR",
            )?;
            Ok(home.join(".local").join("state").join("checkrein"))
        }
        None => Ok(default_state_folder()),
    }
}

fn absolute_folder_path(folder: &Path) -> PathBuf {
    std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned())
}

/// Returns the state folder of all repos as the environment names it.
pub(crate) fn default_state_folder() -> PathBuf {
    let named = |name: &str| {
        env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let folder = named("CHECKREIN_STATE")
        .or_else(|| named("XDG_STATE_HOME").map(|folder| folder.join("checkrein")))
        .or_else(|| named("LOCALAPPDATA").map(|folder| folder.join("checkrein")))
        .or_else(|| home_folder().map(|home| home.join(".local").join("state").join("checkrein")))
        .unwrap_or_else(|| env::temp_dir().join("checkrein-state"));
    absolute_folder_path(&folder)
}

/// Returns the folder for data that may be deleted at any time. It is not the system's folder for
/// temporary files.
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

fn xdg_config_folder() -> Option<PathBuf> {
    let named = |name: &str| {
        env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    named("XDG_CONFIG_HOME")
        .or_else(|| named("APPDATA"))
        .or_else(|| home_folder().map(|home| home.join(".config")))
}

/// Returns the person's home folder. In a static build the C library must not be asked for the
/// account: it would load parts of itself that may be of another version.
pub(crate) fn home_folder() -> Option<PathBuf> {
    #[cfg(all(target_os = "linux", target_feature = "crt-static"))]
    if env::var_os("HOME").is_none() {
        return person_home_by_account();
    }
    env::home_dir()
}

/// Returns a person's folder of an agent: the one that this variable names, or the usual one in
/// their home.
pub(crate) fn agent_home_folder(variable: &str, usual: &str) -> Option<PathBuf> {
    env::var_os(variable)
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)
        .or_else(|| home_folder().map(|home| home.join(usual)))
}

/// Returns the person's home folder by their account, whatever the environment says. `None` where
/// only the environment tells: there `--require-trust` needs `--state`.
pub(crate) fn person_home_by_account() -> Option<PathBuf> {
    #[cfg(target_os = "linux")]
    {
        use std::os::unix::fs::MetadataExt as _;
        let me = std::fs::metadata("/proc/self").ok()?.uid().to_string();
        let users = std::fs::read_to_string("/etc/passwd").ok()?;
        let home = users.lines().find_map(|line| {
            let fields: Vec<&str> = line.split(':').collect();
            (fields.get(2) == Some(&me.as_str())).then(|| fields.get(5).map(PathBuf::from))?
        });
        // A relative or empty folder would be a folder of the tree that is judged.
        home.filter(|home| home.is_absolute())
    }
    #[cfg(not(target_os = "linux"))]
    None
}
