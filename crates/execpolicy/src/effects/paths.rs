//! Where a path points, by its text alone: into the project, a scratch folder, the home, a place
//! that only the run knows. No file system is asked, so a symlink is taken for what it is called.

use super::credentials;
use super::critical_paths;
use super::glob::{globs_intersect, is_glob};

/// The project's tree where its path is not known.
pub(crate) const TREE: &str = "/\u{2}tree";
/// A home whose path is not known.
const HOME: &str = "/\u{2}home";
/// Stands in a text for the top of the project.
pub(crate) const ROOT: char = '\u{3}';
/// Stands in a text for what only the run knows: anything, slashes included.
pub(crate) const UNKNOWN: char = '\u{1}';
/// Stands for what only the run knows, but no slash is in it: a date, a number.
pub(crate) const PIECE: &str = "?*";

/// A path as far as it can be worked out: absolute, without `.` and `..`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ResolvedPath {
    parts: Vec<String>,
}

/// What lies at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PathLocation {
    /// A file or folder of the project, below its top; not `sure` if only where it begins is known.
    Tree {
        /// Whether all of the path is known.
        sure: bool,
    },
    /// The project's tree as a whole.
    WholeTree,
    /// Git's own files.
    Git,
    /// Where nothing is kept: `/dev/null`, the terminal, a pipe.
    NoStorage,
    /// A folder for passing files.
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
pub(crate) struct ProjectRoots {
    roots: Vec<Vec<String>>,
    home: Vec<String>,
}

impl ProjectRoots {
    /// From the folders of the project, the first of which commands start in.
    pub(crate) fn new(roots: &[String]) -> Self {
        let mut split: Vec<Vec<String>> = roots.iter().map(|root| split_path(root)).collect();
        if split.is_empty() {
            split.push(split_path(TREE));
        }
        let first = split.first().map_or(&[][..], Vec::as_slice);
        let home = match first {
            [base, name, ..] if base == "home" || base == "Users" => {
                vec![base.clone(), name.clone()]
            }
            [base, ..] if base == "root" => vec![base.clone()],
            _ => split_path(HOME),
        };
        Self { roots: split, home }
    }

    /// Where commands start.
    pub(crate) fn initial_working_dir(&self) -> ResolvedPath {
        ResolvedPath {
            parts: self.roots.first().cloned().unwrap_or_default(),
        }
    }

    /// The spot that a text names for a command that runs at `from`.
    pub(crate) fn resolve_path_named_in_command(
        &self,
        from: &ResolvedPath,
        text: &str,
    ) -> ResolvedPath {
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
            // `~bob`, `~-`: somebody's.
            (vec!["\u{2}home-of".to_owned()], text)
        } else {
            (from.parts.clone(), text)
        };
        for part in rest.split('/') {
            match part {
                "" | "." => {}
                ".." => {
                    // What a part that is not known holds could be `..` itself.
                    if parts.last().is_some_and(|last| last.contains(UNKNOWN)) {
                        parts.push(UNKNOWN.to_string());
                    } else {
                        parts.pop();
                    }
                }
                part => parts.push(part.to_owned()),
            }
        }
        ResolvedPath { parts }
    }

    /// A spot of which nothing is known.
    pub(crate) fn unknown_path(&self) -> ResolvedPath {
        ResolvedPath {
            parts: vec![UNKNOWN.to_string()],
        }
    }

    /// What lies there.
    pub(crate) fn classify_path_location(&self, spot: &ResolvedPath) -> PathLocation {
        let parts: Vec<&str> = spot.parts.iter().map(String::as_str).collect();
        let unknown = parts.iter().position(|part| part.contains(UNKNOWN));
        let known = parts.get(..unknown.unwrap_or(parts.len())).unwrap_or(&[]);
        let sure = unknown.is_none();
        if let Some(below) = self.strip_project_root(known) {
            return match below {
                // The top itself, or all that lies in it.
                [] if sure => PathLocation::WholeTree,
                [only] if sure && matches_every_name(only) => PathLocation::WholeTree,
                [one, rest @ ..]
                    if matches_every_name(one)
                        && rest.iter().all(|part| matches_every_name(part))
                        && sure =>
                {
                    PathLocation::WholeTree
                }
                [] => PathLocation::Unknown,
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
            // The folder itself, or all that everybody has in it.
            ["tmp" | "var", ..] | ["private", ..]
                if self.path_parts_below_scratch_dir(known).is_some() =>
            {
                match self.path_parts_below_scratch_dir(known) {
                    Some([]) if !sure => PathLocation::Scratch { sure },
                    Some([]) | None => PathLocation::Outside,
                    Some([only]) if matches_every_name(only) => PathLocation::Outside,
                    Some(_) => PathLocation::Scratch { sure },
                }
            }
            _ if self.is_autostart_file(known) => PathLocation::Startup,
            _ => PathLocation::Outside,
        }
    }

    fn strip_project_root<'p, 'q>(&self, known: &'q [&'p str]) -> Option<&'q [&'p str]> {
        self.roots.iter().find_map(|root| {
            let begins = known.len() >= root.len()
                && root.iter().zip(known).all(|(root, part)| root == part)
                && !self.is_foreign_to_project(root.len(), known);
            begins.then(|| known.get(root.len()..)).flatten()
        })
    }

    /// Whether what lies below a root of so many parts is not the project's for all that: a
    /// container's `/` also holds the system, a home its person's settings.
    fn is_foreign_to_project(&self, root: usize, known: &[&str]) -> bool {
        let home = || self.home.iter().map(String::as_str);
        let at_home =
            known.len() > self.home.len() && home().eq(known.iter().copied().take(self.home.len()));
        match (root, known) {
            (0, []) => true,
            (0, [first, ..]) => {
                let system = SYSTEM.iter().any(|folder| globs_intersect(folder, first));
                first.starts_with('\u{2}') || *first != PIECE && system
            }
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
            // What `mktemp` makes on a Mac.
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

    /// Whether a secret is read there; `deep`: with whatever lies below.
    pub(crate) fn is_secret_path(&self, spot: &ResolvedPath, deep: bool) -> bool {
        let parts: Vec<&str> = spot.parts.iter().map(String::as_str).collect();
        let home: Vec<&str> = self.home.iter().map(String::as_str).collect();
        let inside = self.strip_project_root(&parts).is_some();
        credentials::is_secret_path(&parts, &home, inside, deep)
    }

    /// Whether it is somebody's home, or all that lies in it.
    pub(crate) fn is_home(&self, spot: &ResolvedPath) -> bool {
        let parts: Vec<&str> = spot.parts.iter().map(String::as_str).collect();
        let home: Vec<&str> = self.home.iter().map(String::as_str).collect();
        critical_paths::is_home_path(&parts, &home)
    }

    /// Whether the path of these parts may be somebody's home: it is one, or lies neither in the
    /// project nor in a folder for passing files.
    pub(crate) fn may_be_home(&self, parts: &[&str]) -> bool {
        let home: Vec<&str> = self.home.iter().map(String::as_str).collect();
        let elsewhere = self.strip_project_root(parts).is_none()
            && self.path_parts_below_scratch_dir(parts).is_none();
        elsewhere || critical_paths::is_home_path(parts, &home)
    }

    /// Whether it is a folder without which the system does not run, or all that lies in it, and
    /// no project has its top there.
    pub(crate) fn is_system_folder(&self, spot: &ResolvedPath) -> bool {
        let parts: Vec<&str> = spot.parts.iter().map(String::as_str).collect();
        critical_paths::is_system_path(&parts) && self.strip_project_root(&parts).is_none()
    }

    /// Whether it is a loop device, or a part of one: a file that is looked at as a disk.
    pub(crate) fn is_loop_device(&self, spot: &ResolvedPath) -> bool {
        let parts: Vec<&str> = spot.parts.iter().map(String::as_str).collect();
        critical_paths::is_loop_device_path(&parts)
    }

    /// Whether it is a folder of the system into which people put programs and data of their own:
    /// whom it belongs to is theirs to say.
    pub(crate) fn is_user_managed_system_folder(&self, spot: &ResolvedPath) -> bool {
        let parts: Vec<&str> = spot.parts.iter().map(String::as_str).collect();
        critical_paths::is_user_managed_system_path(&parts)
    }

    /// Whether it is a file without which nobody logs in.
    pub(crate) fn is_account_file(&self, spot: &ResolvedPath) -> bool {
        let parts: Vec<&str> = spot.parts.iter().map(String::as_str).collect();
        critical_paths::is_account_file_path(&parts)
    }

    /// Whether it is a disk.
    pub(crate) fn is_disk_device_path(&self, spot: &ResolvedPath) -> bool {
        let parts: Vec<&str> = spot.parts.iter().map(String::as_str).collect();
        critical_paths::is_disk_path(&parts)
    }

    /// Whether it is a folder for passing files itself, into which something is put.
    pub(crate) fn is_scratch_root(&self, spot: &ResolvedPath) -> bool {
        let parts: Vec<&str> = spot.parts.iter().map(String::as_str).collect();
        matches!(
            parts.as_slice(),
            ["tmp"] | ["var", "tmp"] | ["private", "tmp"] | ["dev", "shm"]
        )
    }

    /// Whether all files are meant, by names that leave none out.
    pub(crate) fn matches_all_project_files(&self, spot: &ResolvedPath) -> bool {
        let parts: Vec<&str> = spot.parts.iter().map(String::as_str).collect();
        matches!(
            self.strip_project_root(&parts),
            Some(["**", "?*" | "*" | "*.*"])
        )
    }

    /// The path from the top of the project, if it lies in it.
    pub(crate) fn project_relative_parts(&self, spot: &ResolvedPath) -> Option<Vec<String>> {
        self.roots.iter().find_map(|root| {
            spot.parts
                .strip_prefix(root.as_slice())
                .map(<[String]>::to_vec)
        })
    }
}

/// Folders of a file system that no project brings with it.
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

/// Files of a home that a shell or a session reads by itself.
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

impl ResolvedPath {
    /// As an absolute path.
    pub(crate) fn absolute_path_text(&self) -> String {
        format!("/{}", self.parts.join("/"))
    }

    /// The folder it lies in.
    pub(crate) fn parent_folder(&self) -> Self {
        let mut parts = self.parts.clone();
        parts.pop();
        Self { parts }
    }

    /// Where it leads if `name` is another name of `place`.
    pub(crate) fn resolve_path_alias(&self, name: &Self, place: &Self) -> Option<Self> {
        let rest = self.parts.strip_prefix(name.parts.as_slice())?;
        let mut parts = place.parts.clone();
        parts.extend_from_slice(rest);
        Some(Self { parts })
    }

    /// With one more part.
    pub(crate) fn join_path_part(&self, part: &str) -> Self {
        let mut parts = self.parts.clone();
        parts.push(part.to_owned());
        Self { parts }
    }

    /// Its last part.
    pub(crate) fn file_name(&self) -> Option<&str> {
        self.parts.last().map(String::as_str)
    }

    /// Whether some of it is only known to the run.
    pub(crate) fn path_has_unknown_part(&self) -> bool {
        self.parts.iter().any(|part| part.contains(UNKNOWN))
    }
}

fn split_path(path: &str) -> Vec<String> {
    path.split('/')
        .filter(|part| !part.is_empty() && *part != ".")
        .map(str::to_owned)
        .collect()
}

/// A pattern that leaves nothing out.
fn matches_every_name(part: &str) -> bool {
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
            let ground = ProjectRoots::new(&[root.to_owned()]);
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
        let known = ProjectRoots::new(&["/home/dev/repo".to_owned()]);
        let check = |ground: &ProjectRoots, text: &str, expected: PathLocation| {
            let spot = ground.resolve_path_named_in_command(&ground.initial_working_dir(), text);
            assert_eq!(ground.classify_path_location(&spot), expected, "{text}");
        };
        for ground in [&ProjectRoots::new(&[]), &known] {
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
