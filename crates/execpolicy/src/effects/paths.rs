//! Classifies where a path points: the project, a scratch folder, a home, or a location that is
//! known only at run time. Works on the text alone and never asks the file system, so a symbolic
//! link counts as what its own name says.

use super::credentials;
use super::critical_paths;
use super::glob::{globs_intersect, is_glob};

/// Stands for the project's path where it is not known.
pub(crate) const TREE: &str = "/\u{2}tree";
/// Stands for the path of a home where it is not known.
const HOME: &str = "/\u{2}home";
/// Stands in a text for the top of the project.
pub(crate) const ROOT: char = '\u{3}';
/// Stands in a text for what is known only at run time: anything, slashes included.
pub(crate) const UNKNOWN: char = '\u{1}';
/// Stands for what is known only at run time but holds no slash: a date, a number.
pub(crate) const PIECE: &str = "?*";

/// A path as far as it is known: absolute, without `.` and `..`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LexicalPath {
    parts: Vec<String>,
}

/// The kind of location that a path names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PathLocation {
    /// A file or folder below the top of the project.
    Tree {
        /// Whether all of the path is known.
        sure: bool,
    },
    /// The project's tree as a whole.
    WholeTree,
    /// Git's own files.
    Git,
    /// A sink or stream that stores nothing: `/dev/null`, the terminal, a pipe.
    NoStorage,
    /// A temporary folder, such as `/tmp`.
    Scratch {
        /// Whether all of the path is known.
        sure: bool,
    },
    /// A device.
    Device,
    /// What a login, a shell or a scheduler starts by itself.
    Startup,
    /// Somewhere else.
    Outside,
    /// Not known before the run.
    Unknown,
}

/// Where the project and the home of its person are.
#[derive(Debug, Clone)]
pub(crate) struct ProjectAndHomeFolders {
    roots: Vec<Vec<String>>,
    home: Vec<String>,
}

impl ProjectAndHomeFolders {
    /// Takes the folders of the project; commands start in the first.
    pub(crate) fn new(roots: &[String]) -> Self {
        let mut split: Vec<Vec<String>> = roots.iter().map(|root| path_components(root)).collect();
        if split.is_empty() {
            split.push(path_components(TREE));
        }
        let first = split.first().map_or(&[][..], Vec::as_slice);
        // The home is derived from the project's own path; a project elsewhere leaves it unnamed.
        let home = match first {
            [base, name, ..] if base == "home" || base == "Users" => {
                vec![base.clone(), name.clone()]
            }
            [base, ..] if base == "root" => vec![base.clone()],
            _ => path_components(HOME),
        };
        Self { roots: split, home }
    }

    /// Returns the folder in which commands start.
    pub(crate) fn initial_working_dir(&self) -> LexicalPath {
        LexicalPath {
            parts: self.roots.first().cloned().unwrap_or_default(),
        }
    }

    /// Resolves the path that a text names for a command that runs at `from`.
    pub(crate) fn resolve_path_named_in_command(
        &self,
        from: &LexicalPath,
        text: &str,
    ) -> LexicalPath {
        // Some programs take a URL where others take a path.
        let text = text.strip_prefix("file://").unwrap_or(text);
        let (mut parts, rest) = if let Some(rest) = text.strip_prefix(ROOT) {
            (self.initial_working_dir().parts, rest)
        } else if let Some(rest) = text.strip_prefix('/') {
            (Vec::new(), rest)
        } else if text == "~" || text.starts_with("~/") {
            (self.home.clone(), text.get(1..).unwrap_or(""))
        } else if text == "~+" || text.starts_with("~+/") {
            (from.parts.clone(), text.get(2..).unwrap_or(""))
        } else if text.starts_with('~') {
            // `~bob` is another home; `~-` is the previous folder, which is not tracked.
            (vec!["\u{2}home-of".to_owned()], text)
        } else {
            (from.parts.clone(), text)
        };
        // `..` is resolved by text. Through a symbolic link the kernel would go elsewhere, which
        // this module does not see.
        for part in rest.split('/') {
            match part {
                "" | "." => {}
                ".." => {
                    // An unknown part can hold several parts, or `..`: `..` cannot take it away.
                    if parts.last().is_some_and(|last| last.contains(UNKNOWN)) {
                        parts.push(UNKNOWN.to_string());
                    } else {
                        parts.pop();
                    }
                }
                part => parts.push(part.to_owned()),
            }
        }
        LexicalPath { parts }
    }

    /// Returns a path of which nothing is known.
    pub(crate) fn unknown_path(&self) -> LexicalPath {
        LexicalPath {
            parts: vec![UNKNOWN.to_string()],
        }
    }

    /// Returns what kind of location a path is.
    pub(crate) fn classify_path_location(&self, spot: &LexicalPath) -> PathLocation {
        let parts: Vec<&str> = spot.parts.iter().map(String::as_str).collect();
        // Only the parts before the first unknown one decide.
        let unknown = parts.iter().position(|part| part.contains(UNKNOWN));
        let known = parts.get(..unknown.unwrap_or(parts.len())).unwrap_or(&[]);
        let sure = unknown.is_none();
        if let Some(below) = self.strip_project_root(known) {
            return match below {
                // The top itself, or all that lies in it.
                [] if sure => PathLocation::WholeTree,
                [only] if sure && glob_matches_every_file_name(only) => PathLocation::WholeTree,
                [one, rest @ ..]
                    if glob_matches_every_file_name(one)
                        && rest.iter().all(|part| glob_matches_every_file_name(part))
                        && sure =>
                {
                    PathLocation::WholeTree
                }
                // The unknown rest may be nothing, and then the whole tree is meant.
                [] => PathLocation::Unknown,
                // A `.git` at any depth counts: submodules and nested repositories have their own.
                _ if below.contains(&".git") => PathLocation::Git,
                _ => PathLocation::Tree { sure },
            };
        }
        match known {
            [] if !sure => PathLocation::Unknown,
            [
                "dev",
                "null" | "zero" | "full" | "random" | "urandom" | "tty" | "stdin" | "stdout"
                | "stderr" | "ptmx",
            ]
            | ["dev", "fd", ..]
            | ["proc", "self", "fd", ..] => PathLocation::NoStorage,
            ["dev", "shm", ..] => PathLocation::Scratch { sure },
            ["dev", ..] => PathLocation::Device,
            // `/tmp` itself and `/tmp/*` belong to everybody; a name in it is scratch.
            ["tmp" | "var", ..] | ["private", ..]
                if self.path_parts_below_scratch_dir(known).is_some() =>
            {
                match self.path_parts_below_scratch_dir(known) {
                    Some([]) if !sure => PathLocation::Scratch { sure },
                    Some([]) | None => PathLocation::Outside,
                    Some([only]) if glob_matches_every_file_name(only) => PathLocation::Outside,
                    Some(_) => PathLocation::Scratch { sure },
                }
            }
            _ if self.is_autostart_file(known) => PathLocation::Startup,
            _ => PathLocation::Outside,
        }
    }

    fn strip_project_root<'p, 'q>(&self, known: &'q [&'p str]) -> Option<&'q [&'p str]> {
        self.roots.iter().find_map(|root| {
            // Several folders can belong to the project; the first that contains the path decides.
            let begins = known.len() >= root.len()
                && root.iter().zip(known).all(|(root, part)| root == part)
                && !self.is_foreign_path_under_root(root.len(), known);
            begins.then(|| known.get(root.len()..)).flatten()
        })
    }

    /// Whether a path below a root of this many parts is not the project's after all. A project at
    /// `/`, as in a container, does not own the system's folders; one at a home does not own the
    /// person's settings.
    fn is_foreign_path_under_root(&self, root: usize, known: &[&str]) -> bool {
        let home = || self.home.iter().map(String::as_str);
        let at_home =
            known.len() > self.home.len() && home().eq(known.iter().copied().take(self.home.len()));
        match (root, known) {
            (0, []) => true,
            (0, [first, ..]) => {
                let system = SYSTEM.iter().any(|folder| globs_intersect(folder, first));
                // A root of `/` owns neither an unnamed home nor a pattern that can mean a system
                // folder.
                first.starts_with('\u{2}') || *first != PIECE && system
            }
            // A hidden name or `Library` in a home holds settings of the person. `.git` is the
            // repository.
            (_, _) if root <= self.home.len() && at_home => known
                .get(self.home.len())
                .is_some_and(|name| *name == "Library" || name.starts_with('.') && *name != ".git"),
            _ => false,
        }
    }

    fn path_parts_below_scratch_dir<'p, 'q>(&self, known: &'q [&'p str]) -> Option<&'q [&'p str]> {
        match known {
            ["tmp", rest @ ..] | ["var", "tmp", rest @ ..] | ["private", "tmp", rest @ ..] => {
                Some(rest)
            }
            // macOS has its `TMPDIR`, which `mktemp` uses, here.
            ["var", "folders", rest @ ..] => Some(rest),
            _ => None,
        }
    }

    fn is_autostart_file(&self, known: &[&str]) -> bool {
        let home = self.home.iter().map(String::as_str);
        let at_home =
            known.len() > self.home.len() && home.zip(known).all(|(home, part)| home == *part);
        let below = known.get(self.home.len()..).unwrap_or(&[]);
        match (at_home, below) {
            (true, [name]) => STARTUP.contains(name),
            (true, [".ssh", "authorized_keys" | "rc" | "config" | "environment"])
            | (true, [".config", "autostart" | "systemd" | "fish", ..])
            | (true, ["Library", "LaunchAgents", ..]) => true,
            _ => matches!(
                known,
                [
                    "etc",
                    "profile"
                        | "profile.d"
                        | "bash.bashrc"
                        | "zshrc"
                        | "zsh"
                        | "environment"
                        | "crontab"
                        | "rc.local",
                    ..
                ] | [
                    "etc",
                    "cron.d" | "cron.daily" | "cron.hourly" | "cron.weekly" | "cron.monthly",
                    ..
                ] | [
                    "etc" | "lib" | "usr",
                    "systemd" | "init.d" | "ld.so.preload",
                    ..
                ] | ["var", "spool", "cron", ..]
                    | ["Library", "LaunchAgents" | "LaunchDaemons", ..]
            ),
        }
    }

    /// Whether a secret is read at this path; `deep` includes whatever lies below it.
    pub(crate) fn is_secret_path(&self, spot: &LexicalPath, deep: bool) -> bool {
        let parts: Vec<&str> = spot.parts.iter().map(String::as_str).collect();
        let home: Vec<&str> = self.home.iter().map(String::as_str).collect();
        let inside = self.strip_project_root(&parts).is_some();
        credentials::is_secret_path(&parts, &home, inside, deep)
    }

    /// Whether the path is somebody's home, or means everything in it.
    pub(crate) fn is_home(&self, spot: &LexicalPath) -> bool {
        let parts: Vec<&str> = spot.parts.iter().map(String::as_str).collect();
        let home: Vec<&str> = self.home.iter().map(String::as_str).collect();
        critical_paths::means_home_or_all_inside(&parts, &home)
    }

    /// Whether the path of these parts may be somebody's home: it is one, or lies neither in the
    /// project nor in a scratch folder.
    pub(crate) fn may_be_home(&self, parts: &[&str]) -> bool {
        let home: Vec<&str> = self.home.iter().map(String::as_str).collect();
        let elsewhere = self.strip_project_root(parts).is_none()
            && self.path_parts_below_scratch_dir(parts).is_none();
        elsewhere || critical_paths::means_home_or_all_inside(parts, &home)
    }

    /// Whether the path is a folder that the system needs, or means everything in it. A folder in
    /// which the project has its top is none.
    pub(crate) fn is_system_folder(&self, spot: &LexicalPath) -> bool {
        let parts: Vec<&str> = spot.parts.iter().map(String::as_str).collect();
        critical_paths::is_system_path(&parts) && self.strip_project_root(&parts).is_none()
    }

    /// Whether the path is a loop device or a partition of one: a file presented as a disk.
    pub(crate) fn is_loop_device(&self, spot: &LexicalPath) -> bool {
        let parts: Vec<&str> = spot.parts.iter().map(String::as_str).collect();
        critical_paths::is_loop_device_path(&parts)
    }

    /// Whether the path is a system folder into which people put programs and data of their own.
    /// Its owner may be changed.
    pub(crate) fn is_user_managed_system_folder(&self, spot: &LexicalPath) -> bool {
        let parts: Vec<&str> = spot.parts.iter().map(String::as_str).collect();
        critical_paths::is_user_managed_system_path(&parts)
    }

    /// Whether the path is a file without which nobody can log in.
    pub(crate) fn is_account_database_file(&self, spot: &LexicalPath) -> bool {
        let parts: Vec<&str> = spot.parts.iter().map(String::as_str).collect();
        critical_paths::is_login_account_file_path(&parts)
    }

    /// Whether the path is a disk device.
    pub(crate) fn is_disk_device_path(&self, spot: &LexicalPath) -> bool {
        let parts: Vec<&str> = spot.parts.iter().map(String::as_str).collect();
        critical_paths::is_disk_device_or_glob(&parts)
    }

    /// Whether the path is a scratch folder itself.
    pub(crate) fn is_scratch_root(&self, spot: &LexicalPath) -> bool {
        let parts: Vec<&str> = spot.parts.iter().map(String::as_str).collect();
        matches!(
            parts.as_slice(),
            ["tmp"] | ["var", "tmp"] | ["private", "tmp"] | ["dev", "shm"]
        )
    }

    /// Whether the path is a pattern that matches all files of the project.
    pub(crate) fn matches_all_project_files(&self, spot: &LexicalPath) -> bool {
        let parts: Vec<&str> = spot.parts.iter().map(String::as_str).collect();
        matches!(
            self.strip_project_root(&parts),
            Some(["**", "?*" | "*" | "*.*"])
        )
    }

    /// Returns the path relative to the project, if it lies inside.
    pub(crate) fn project_relative_parts(&self, spot: &LexicalPath) -> Option<Vec<String>> {
        self.roots.iter().find_map(|root| {
            spot.parts
                .strip_prefix(root.as_slice())
                .map(<[String]>::to_vec)
        })
    }
}

/// Top-level folders that belong to the system and to no project.
const SYSTEM: &[&str] = &[
    "Applications",
    "Library",
    "System",
    "Users",
    "Volumes",
    "bin",
    "boot",
    "dev",
    "etc",
    "home",
    "lib",
    "lib32",
    "lib64",
    "libx32",
    "media",
    "mnt",
    "opt",
    "private",
    "proc",
    "root",
    "run",
    "sbin",
    "snap",
    "srv",
    "sys",
    "tmp",
    "usr",
    "var",
];

/// Files of a home that a shell, a session or a tool reads at its start.
const STARTUP: &[&str] = &[
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".kshrc",
    ".cshrc",
    ".tcshrc",
    ".inputrc",
    ".xinitrc",
    ".xprofile",
    ".pam_environment",
    ".gitconfig",
    ".vimrc",
    ".tmux.conf",
    ".npmrc",
];

impl LexicalPath {
    /// Returns the absolute path as text.
    pub(crate) fn absolute_path_text(&self) -> String {
        format!("/{}", self.parts.join("/"))
    }

    /// Returns the folder that contains the path.
    pub(crate) fn parent_folder(&self) -> Self {
        let mut parts = self.parts.clone();
        parts.pop();
        Self { parts }
    }

    /// Returns the path behind this one if `name` is another name of `place`.
    pub(crate) fn path_with_alias_replaced(&self, name: &Self, place: &Self) -> Option<Self> {
        let rest = self.parts.strip_prefix(name.parts.as_slice())?;
        let mut parts = place.parts.clone();
        parts.extend_from_slice(rest);
        Some(Self { parts })
    }

    /// Returns the path with one more part.
    pub(crate) fn join_path_part(&self, part: &str) -> Self {
        let mut parts = self.parts.clone();
        parts.push(part.to_owned());
        Self { parts }
    }

    /// Returns the last part.
    pub(crate) fn file_name(&self) -> Option<&str> {
        self.parts.last().map(String::as_str)
    }

    /// Whether some part of the path is known only at run time.
    pub(crate) fn path_has_unknown_part(&self) -> bool {
        self.parts.iter().any(|part| part.contains(UNKNOWN))
    }
}

fn path_components(path: &str) -> Vec<String> {
    path.split('/')
        .filter(|part| !part.is_empty() && *part != ".")
        .map(str::to_owned)
        .collect()
}

/// Whether a pattern matches every name.
fn glob_matches_every_file_name(part: &str) -> bool {
    is_glob(part)
        && !part.ends_with('.')
        && part.chars().all(|c| matches!(c, '*' | '.'))
        && !part.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_above_the_system_does_not_own_it() {
        let check = |root: &str, text: &str, expected: PathLocation| {
            let ground = ProjectAndHomeFolders::new(&[root.to_owned()]);
            let spot = ground.resolve_path_named_in_command(&ground.initial_working_dir(), text);
            assert_eq!(
                ground.classify_path_location(&spot),
                expected,
                "{root}: {text}"
            );
        };
        let tree = PathLocation::Tree { sure: true };
        for own in ["/app/x", "x", "*.tmp"] {
            check("/", own, tree);
        }
        for foreign in [
            "/",
            "*",
            "/*/x",
            "/e*/hosts",
            "/etc/hosts",
            "/usr/bin/x",
            "/home/dev/x",
            "~",
            "~/x",
        ] {
            check("/", foreign, PathLocation::Outside);
        }
        check("/", "/dev/sda", PathLocation::Device);
        check("/", "/tmp/x", PathLocation::Scratch { sure: true });
        check("/", "/etc/crontab", PathLocation::Startup);
        check("/home/dev", "notes/x", tree);
        check("/home/dev", ".git/config", PathLocation::Git);
        check("/home/dev", ".bashrc", PathLocation::Startup);
        check("/home/dev", ".aws/x", PathLocation::Outside);
    }

    #[test]
    fn where_a_path_points() {
        let tree = PathLocation::Tree { sure: true };
        let known = ProjectAndHomeFolders::new(&["/home/dev/repo".to_owned()]);
        let check = |ground: &ProjectAndHomeFolders, text: &str, expected: PathLocation| {
            let spot = ground.resolve_path_named_in_command(&ground.initial_working_dir(), text);
            assert_eq!(ground.classify_path_location(&spot), expected, "{text}");
        };
        for ground in [&ProjectAndHomeFolders::new(&[]), &known] {
            check(ground, "a", tree);
            check(ground, "./a/../b", tree);
            check(ground, "*.tmp", tree);
            check(ground, "build/*", tree);
            for whole in [".", "./", "*", "./*", "a/..", ".*", "**/*"] {
                check(ground, whole, PathLocation::WholeTree);
            }
            for outside in [
                "..",
                "../x",
                "a/../../b",
                "/",
                "/etc/hosts",
                "~",
                "~/x",
                "~bob/x",
                "/tmp",
                "/tmp/*",
            ] {
                check(ground, outside, PathLocation::Outside);
            }
            check(ground, ".git", PathLocation::Git);
            check(ground, "sub/.git/config", PathLocation::Git);
            check(ground, "/tmp/x", PathLocation::Scratch { sure: true });
            check(ground, "/dev/null", PathLocation::NoStorage);
            check(ground, "/dev/sda", PathLocation::Device);
            for startup in [
                "~/.bashrc",
                "~/.ssh/authorized_keys",
                "/etc/cron.d/x",
                "~/.config/autostart/x",
            ] {
                check(ground, startup, PathLocation::Startup);
            }
            check(ground, "\u{1}", PathLocation::Unknown);
            check(ground, "\u{1}/x", PathLocation::Unknown);
            check(ground, "build/\u{1}", PathLocation::Tree { sure: false });
            check(ground, "/tmp/\u{1}", PathLocation::Scratch { sure: false });
            check(ground, "/\u{1}", PathLocation::Unknown);
            check(
                ground,
                "build/\u{1}/../..",
                PathLocation::Tree { sure: false },
            );
        }
        check(&known, "/home/dev/repo/a", tree);
        check(&known, "/home/dev/repo", PathLocation::WholeTree);
        check(&known, "/home/dev/repo/../other", PathLocation::Outside);
        check(&known, "~/repo/a", tree);
        check(&known, "/home/dev/.bashrc", PathLocation::Startup);
    }
}
