//! Where a path points, by its text alone: into the project, a scratch folder, the home, a place
//! that only the run knows. No file system is asked, so a symlink is taken for what it is called.

use super::credentials;
use super::glob::{meets, wild};
use super::vital;

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
pub(crate) struct Spot {
    parts: Vec<String>,
}

/// What lies at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
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
    Nowhere,
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
pub(crate) struct Ground {
    roots: Vec<Vec<String>>,
    home: Vec<String>,
}

impl Ground {
    /// From the folders of the project, the first of which commands start in.
    pub(crate) fn new(roots: &[String]) -> Self {
        let mut split: Vec<Vec<String>> = roots.iter().map(|root| parts_of(root)).collect();
        if split.is_empty() {
            split.push(parts_of(TREE));
        }
        let first = split.first().map_or(&[][..], Vec::as_slice);
        let home = match first {
            [base, name, ..] if base == "home" || base == "Users" => {
                vec![base.clone(), name.clone()]
            }
            [base, ..] if base == "root" => vec![base.clone()],
            _ => parts_of(HOME),
        };
        Self { roots: split, home }
    }

    /// Where commands start.
    pub(crate) fn start(&self) -> Spot {
        Spot {
            parts: self.roots.first().cloned().unwrap_or_default(),
        }
    }

    /// The spot that a text names for a command that runs at `from`.
    pub(crate) fn spot(&self, from: &Spot, text: &str) -> Spot {
        let text = text.strip_prefix("file://").unwrap_or(text);
        let (mut parts, rest) = if let Some(rest) = text.strip_prefix(ROOT) {
            (self.start().parts, rest)
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
        Spot { parts }
    }

    /// A spot of which nothing is known.
    pub(crate) fn unknown(&self) -> Spot {
        Spot {
            parts: vec![UNKNOWN.to_string()],
        }
    }

    /// What lies there.
    pub(crate) fn place(&self, spot: &Spot) -> Place {
        let parts: Vec<&str> = spot.parts.iter().map(String::as_str).collect();
        let unknown = parts.iter().position(|part| part.contains(UNKNOWN));
        let known = parts.get(..unknown.unwrap_or(parts.len())).unwrap_or(&[]);
        let sure = unknown.is_none();
        if let Some(below) = self.below_root(known) {
            return match below {
                // The top itself, or all that lies in it.
                [] if sure => Place::WholeTree,
                [only] if sure && is_all(only) => Place::WholeTree,
                [one, rest @ ..] if is_all(one) && rest.iter().all(|part| is_all(part)) && sure => {
                    Place::WholeTree
                }
                [] => Place::Unknown,
                _ if below.contains(&".git") => Place::Git,
                _ => Place::Tree { sure },
            };
        }
        match known {
            [] if !sure => Place::Unknown,
            [
                "dev",
                "null" | "zero" | "full" | "random" | "urandom" | "tty" | "stdin" | "stdout"
                | "stderr" | "ptmx",
            ]
            | ["dev", "fd", ..]
            | ["proc", "self", "fd", ..] => Place::Nowhere,
            ["dev", "shm", ..] => Place::Scratch { sure },
            ["dev", ..] => Place::Device,
            // The folder itself, or all that everybody has in it.
            ["tmp" | "var", ..] | ["private", ..] if self.scratch(known).is_some() => {
                match self.scratch(known) {
                    Some([]) if !sure => Place::Scratch { sure },
                    Some([]) | None => Place::Outside,
                    Some([only]) if is_all(only) => Place::Outside,
                    Some(_) => Place::Scratch { sure },
                }
            }
            _ if self.starts_by_itself(known) => Place::Startup,
            _ => Place::Outside,
        }
    }

    fn below_root<'p, 'q>(&self, known: &'q [&'p str]) -> Option<&'q [&'p str]> {
        self.roots.iter().find_map(|root| {
            let begins = known.len() >= root.len()
                && root.iter().zip(known).all(|(root, part)| root == part)
                && !self.is_foreign(root.len(), known);
            begins.then(|| known.get(root.len()..)).flatten()
        })
    }

    /// Whether what lies below a root of so many parts is not the project's for all that: a
    /// container's `/` also holds the system, a home its person's settings.
    fn is_foreign(&self, root: usize, known: &[&str]) -> bool {
        let home = || self.home.iter().map(String::as_str);
        let at_home =
            known.len() > self.home.len() && home().eq(known.iter().copied().take(self.home.len()));
        match (root, known) {
            (0, []) => true,
            (0, [first, ..]) => {
                let system = SYSTEM.iter().any(|folder| meets(folder, first));
                first.starts_with('\u{2}') || *first != PIECE && system
            }
            (_, _) if root <= self.home.len() && at_home => known
                .get(self.home.len())
                .is_some_and(|name| *name == "Library" || name.starts_with('.') && *name != ".git"),
            _ => false,
        }
    }

    fn scratch<'p, 'q>(&self, known: &'q [&'p str]) -> Option<&'q [&'p str]> {
        match known {
            ["tmp", rest @ ..] | ["var", "tmp", rest @ ..] | ["private", "tmp", rest @ ..] => {
                Some(rest)
            }
            // What `mktemp` makes on a Mac.
            ["var", "folders", rest @ ..] => Some(rest),
            _ => None,
        }
    }

    fn starts_by_itself(&self, known: &[&str]) -> bool {
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
    pub(crate) fn is_secret(&self, spot: &Spot, deep: bool) -> bool {
        let parts: Vec<&str> = spot.parts.iter().map(String::as_str).collect();
        let home: Vec<&str> = self.home.iter().map(String::as_str).collect();
        let inside = self.below_root(&parts).is_some();
        credentials::read_at(&parts, &home, inside, deep)
    }

    /// Whether it is somebody's home, or all that lies in it.
    pub(crate) fn is_home(&self, spot: &Spot) -> bool {
        let parts: Vec<&str> = spot.parts.iter().map(String::as_str).collect();
        let home: Vec<&str> = self.home.iter().map(String::as_str).collect();
        vital::is_home(&parts, &home)
    }

    /// Whether the path of these parts may be somebody's home: it is one, or lies neither in the
    /// project nor in a folder for passing files.
    pub(crate) fn may_be_home(&self, parts: &[&str]) -> bool {
        let home: Vec<&str> = self.home.iter().map(String::as_str).collect();
        let elsewhere = self.below_root(parts).is_none() && self.scratch(parts).is_none();
        elsewhere || vital::is_home(parts, &home)
    }

    /// Whether it is a folder without which the system does not run, or all that lies in it, and
    /// no project has its top there.
    pub(crate) fn is_system(&self, spot: &Spot) -> bool {
        let parts: Vec<&str> = spot.parts.iter().map(String::as_str).collect();
        vital::is_system(&parts) && self.below_root(&parts).is_none()
    }

    /// Whether it is a loop device, or a part of one: a file that is looked at as a disk.
    pub(crate) fn is_loop(&self, spot: &Spot) -> bool {
        let parts: Vec<&str> = spot.parts.iter().map(String::as_str).collect();
        vital::is_loop(&parts)
    }

    /// Whether it is a folder of the system into which people put programs and data of their own:
    /// whom it belongs to is theirs to say.
    pub(crate) fn is_for_additions(&self, spot: &Spot) -> bool {
        let parts: Vec<&str> = spot.parts.iter().map(String::as_str).collect();
        vital::is_for_additions(&parts)
    }

    /// Whether it is a file without which nobody logs in.
    pub(crate) fn is_login(&self, spot: &Spot) -> bool {
        let parts: Vec<&str> = spot.parts.iter().map(String::as_str).collect();
        vital::is_login(&parts)
    }

    /// Whether it is a disk.
    pub(crate) fn is_disk(&self, spot: &Spot) -> bool {
        let parts: Vec<&str> = spot.parts.iter().map(String::as_str).collect();
        vital::is_disk(&parts)
    }

    /// Whether it is a folder for passing files itself, into which something is put.
    pub(crate) fn is_passing(&self, spot: &Spot) -> bool {
        let parts: Vec<&str> = spot.parts.iter().map(String::as_str).collect();
        matches!(
            parts.as_slice(),
            ["tmp"] | ["var", "tmp"] | ["private", "tmp"] | ["dev", "shm"]
        )
    }

    /// Whether all files are meant, by names that leave none out.
    pub(crate) fn is_everything(&self, spot: &Spot) -> bool {
        let parts: Vec<&str> = spot.parts.iter().map(String::as_str).collect();
        matches!(self.below_root(&parts), Some(["**", "?*" | "*" | "*.*"]))
    }

    /// The path from the top of the project, if it lies in it.
    pub(crate) fn below_top(&self, spot: &Spot) -> Option<Vec<String>> {
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

impl Spot {
    /// As an absolute path.
    pub(crate) fn path(&self) -> String {
        format!("/{}", self.parts.join("/"))
    }

    /// The folder it lies in.
    pub(crate) fn parent(&self) -> Self {
        let mut parts = self.parts.clone();
        parts.pop();
        Self { parts }
    }

    /// Where it leads if `name` is another name of `place`.
    pub(crate) fn through(&self, name: &Self, place: &Self) -> Option<Self> {
        let rest = self.parts.strip_prefix(name.parts.as_slice())?;
        let mut parts = place.parts.clone();
        parts.extend_from_slice(rest);
        Some(Self { parts })
    }

    /// With one more part.
    pub(crate) fn with(&self, part: &str) -> Self {
        let mut parts = self.parts.clone();
        parts.push(part.to_owned());
        Self { parts }
    }

    /// Its last part.
    pub(crate) fn name(&self) -> Option<&str> {
        self.parts.last().map(String::as_str)
    }

    /// Whether some of it is only known to the run.
    pub(crate) fn is_open(&self) -> bool {
        self.parts.iter().any(|part| part.contains(UNKNOWN))
    }
}

fn parts_of(path: &str) -> Vec<String> {
    path.split('/')
        .filter(|part| !part.is_empty() && *part != ".")
        .map(str::to_owned)
        .collect()
}

/// A pattern that leaves nothing out.
fn is_all(part: &str) -> bool {
    wild(part)
        && !part.ends_with('.')
        && part.chars().all(|c| matches!(c, '*' | '.'))
        && !part.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_above_the_system_does_not_own_it() {
        let check = |root: &str, text: &str, expected: Place| {
            let ground = Ground::new(&[root.to_owned()]);
            let spot = ground.spot(&ground.start(), text);
            assert_eq!(ground.place(&spot), expected, "{root}: {text}");
        };
        let tree = Place::Tree { sure: true };
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
            check("/", foreign, Place::Outside);
        }
        check("/", "/dev/sda", Place::Device);
        check("/", "/tmp/x", Place::Scratch { sure: true });
        check("/", "/etc/crontab", Place::Startup);
        check("/home/dev", "notes/x", tree);
        check("/home/dev", ".git/config", Place::Git);
        check("/home/dev", ".bashrc", Place::Startup);
        check("/home/dev", ".aws/x", Place::Outside);
    }

    #[test]
    fn where_a_path_points() {
        let tree = Place::Tree { sure: true };
        let known = Ground::new(&["/home/dev/repo".to_owned()]);
        let check = |ground: &Ground, text: &str, expected: Place| {
            let spot = ground.spot(&ground.start(), text);
            assert_eq!(ground.place(&spot), expected, "{text}");
        };
        for ground in [&Ground::new(&[]), &known] {
            check(ground, "a", tree);
            check(ground, "./a/../b", tree);
            check(ground, "*.tmp", tree);
            check(ground, "build/*", tree);
            for whole in [".", "./", "*", "./*", "a/..", ".*", "**/*"] {
                check(ground, whole, Place::WholeTree);
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
                check(ground, outside, Place::Outside);
            }
            check(ground, ".git", Place::Git);
            check(ground, "sub/.git/config", Place::Git);
            check(ground, "/tmp/x", Place::Scratch { sure: true });
            check(ground, "/dev/null", Place::Nowhere);
            check(ground, "/dev/sda", Place::Device);
            for startup in [
                "~/.bashrc",
                "~/.ssh/authorized_keys",
                "/etc/cron.d/x",
                "~/.config/autostart/x",
            ] {
                check(ground, startup, Place::Startup);
            }
            check(ground, "\u{1}", Place::Unknown);
            check(ground, "\u{1}/x", Place::Unknown);
            check(ground, "build/\u{1}", Place::Tree { sure: false });
            check(ground, "/tmp/\u{1}", Place::Scratch { sure: false });
            check(ground, "/\u{1}", Place::Unknown);
            check(ground, "build/\u{1}/../..", Place::Tree { sure: false });
        }
        check(&known, "/home/dev/repo/a", tree);
        check(&known, "/home/dev/repo", Place::WholeTree);
        check(&known, "/home/dev/repo/../other", Place::Outside);
        check(&known, "~/repo/a", tree);
        check(&known, "/home/dev/.bashrc", Place::Startup);
    }
}
