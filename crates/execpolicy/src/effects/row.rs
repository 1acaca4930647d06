//! What is written down about a program: one row. Its options that take a value, where its
//! operands stand, and what happens to them.

use super::Effect;
use super::call::Call;
use super::inert::InertOption;

/// What a command does beside reading and writing the files that it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Deed {
    /// Reaches the network; brings something here.
    Network,
    /// Installs packages.
    Installs,
    /// Runs what the project says: build scripts, tests, a program of its own.
    Opaque,
    /// Moves the whole tree to another state that is kept: another branch, a merge, a stash.
    Moves,
    /// Runs something on another machine, or in another tree than this.
    Elsewhere,
    /// Sends files to another machine.
    Uploads,
    /// Hands something to others for good: a package, a release, a deployment.
    Publishes,
    /// Replaces or removes what others have.
    Forces,
    /// Changes services that others may use.
    Deploys,
    /// Speaks for the person where others read it: closes, locks, comments.
    Speaks,
    /// Rewrites a repository's whole history, or drops what only its records of moves kept.
    Rewrites,
    /// Moves or drops names in history; what they named can still be found.
    History,
    /// Throws away work that is nowhere else.
    Drops,
    /// Skips or switches off checks.
    Unchecked,
    /// Acts with another account's rights, or gives rights away.
    Privilege,
    /// Goes on, or comes back, after the agent has ended.
    Persists,
    /// Destroys data or services outside the project's tree.
    Destroys,
    /// Destroys what is on a disk.
    Wipes,
    /// Stops or restarts the machine.
    Stops,
    /// Changes the machine: mounts, processes of others, its network, its power.
    Machine,
    /// Shows or hands on a secret.
    Secret,
    /// Changes whom many files belong to, or what may be done with them.
    Modes,
    /// Code that cannot be read beforehand.
    Code,
    /// Options that only the run knows.
    Unclear,
    /// Nothing is written down about it.
    Unknown,
}

impl Deed {
    /// It is ordinary work, and more than work on the project's files.
    pub(crate) fn reaches(self) -> bool {
        matches!(self, Self::Network | Self::Installs | Self::Moves)
    }

    /// Why it is refused where destruction is: nobody means it.
    pub(crate) fn destroys(self) -> Option<&'static str> {
        match self {
            Self::Wipes | Self::Stops => self.asks(true),
            Self::Network
            | Self::Installs
            | Self::Opaque
            | Self::Moves
            | Self::Elsewhere
            | Self::Uploads
            | Self::Publishes
            | Self::Forces
            | Self::Deploys
            | Self::Speaks
            | Self::Rewrites
            | Self::History
            | Self::Drops
            | Self::Unchecked
            | Self::Privilege
            | Self::Persists
            | Self::Destroys
            | Self::Machine
            | Self::Secret
            | Self::Modes
            | Self::Code
            | Self::Unclear
            | Self::Unknown => None,
        }
    }

    /// Why a person is asked about it wherever hazards are asked about, and what to do instead:
    /// others feel it, and nobody takes it back.
    pub(crate) fn hazard(self) -> Option<&'static str> {
        Some(match self {
            Self::Publishes => {
                "hands something to others that is hard to take back: leave that to the person"
            }
            Self::Forces => {
                "replaces or removes what others have: add to it instead (a new commit, a new \
                 version), or leave that to the person"
            }
            Self::Deploys => "changes services that others may use: leave that to the person",
            Self::Rewrites => "rewrites or drops history: leave that to the person",
            Self::Network
            | Self::Installs
            | Self::Opaque
            | Self::Moves
            | Self::Elsewhere
            | Self::Uploads
            | Self::Speaks
            | Self::History
            | Self::Drops
            | Self::Unchecked
            | Self::Privilege
            | Self::Persists
            | Self::Destroys
            | Self::Wipes
            | Self::Stops
            | Self::Machine
            | Self::Secret
            | Self::Modes
            | Self::Code
            | Self::Unclear
            | Self::Unknown => return None,
        })
    }

    /// Why a person is asked; `None` if it is ordinary work.
    pub(crate) fn asks(self, opaque: bool) -> Option<&'static str> {
        Some(match self {
            Self::Network | Self::Installs | Self::Moves => return None,
            Self::Opaque if !opaque => return None,
            Self::Opaque => "runs code that is not read beforehand",
            Self::Elsewhere => "runs something on another machine",
            Self::Uploads => "sends files to another machine",
            Self::Publishes => "hands something to others that is hard to take back",
            Self::Forces => "replaces or removes what others have",
            Self::Deploys => "changes services that others may use",
            Self::Speaks => "speaks for the person where others read it",
            Self::Rewrites | Self::History => "rewrites or drops history",
            Self::Drops => "throws away work that may be nowhere else",
            Self::Unchecked => "skips or switches off checks",
            Self::Privilege => "acts with another account's rights, or changes rights",
            Self::Persists => "goes on or comes back after this work has ended",
            Self::Destroys => "destroys data or services outside the project's tree",
            Self::Wipes => "destroys what is on a disk",
            Self::Stops => "stops the machine, or all that runs on it",
            Self::Machine => "changes the machine itself",
            Self::Secret => "shows or hands on a secret",
            Self::Modes => "changes the rights of many files at once",
            Self::Code => "runs code that cannot be read beforehand",
            Self::Unclear => "has options that only the run knows",
            Self::Unknown => "is not a command that this build knows",
        })
    }
}

/// What an option means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum On {
    /// Its value is a text.
    Value,
    /// Its value names a file that is read.
    Reads,
    /// Its value names a file that is written.
    Writes,
    /// Its value names a folder into which the operands are put.
    Into,
    /// Its value names the folder from which files are named.
    At,
    /// Its value is a command.
    Runs,
    /// The operands are written, too; a value can only be attached.
    Edits,
    /// The operands are read, as the program or pattern is in its value.
    Program,
    /// It takes no value and does this.
    Does(Deed),
    /// It takes a value and does this.
    With(Deed),
    /// Nothing happens but a message, if it is certain that it is read as this one.
    Inert(&'static InertOption),
}

impl On {
    /// Whether the next word belongs to it.
    pub(super) fn takes_value(self) -> bool {
        matches!(
            self,
            Self::Value
                | Self::Reads
                | Self::Writes
                | Self::Into
                | Self::At
                | Self::Runs
                | Self::Program
                | Self::With(_)
        )
    }
}

/// What happens to the words that are no options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operands {
    /// They name no files.
    Text,
    /// They are read.
    Read,
    /// Only their names and what is known of them is shown.
    List,
    /// They are written or made.
    Write,
    /// They are written, and what was in them is lost.
    Replace,
    /// They are removed.
    Remove,
    /// All but the last are read, the last is written or they are put into it.
    Copy,
    /// All but the last are removed, the last is written or they are put into it.
    Move,
    /// The first is a pattern or a program, the others are read.
    FirstText,
    /// The first is read, the second written.
    FromTo,
    /// There should be none: with one it is not known what happens.
    None,
}

/// A program, or one of its sub-commands.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    pub(super) names: &'static [&'static str],
    pub(super) values: &'static str,
    pub(super) longs: &'static [&'static str],
    pub(super) options: &'static [(&'static str, On)],
    pub(super) operands: Operands,
    pub(super) does: &'static [Deed],
    pub(super) subs: &'static [Row],
    pub(super) others: Option<&'static [Deed]>,
    pub(super) words: bool,
    pub(super) more: Option<fn(&Call<'_>, &mut Vec<Effect>)>,
}

impl Row {
    /// A program that does nothing to files.
    pub(super) const fn of(names: &'static [&'static str]) -> Self {
        Self {
            names,
            values: "",
            longs: &[],
            options: &[],
            operands: Operands::Text,
            does: &[],
            subs: &[],
            others: None,
            words: false,
            more: None,
        }
    }

    /// A program that reads its operands.
    pub(super) const fn reads(names: &'static [&'static str]) -> Self {
        Self::of(names).operands(Operands::Read)
    }

    /// One that writes them.
    pub(super) const fn writes(names: &'static [&'static str]) -> Self {
        Self::of(names).operands(Operands::Write)
    }

    /// One that removes them.
    pub(super) const fn removes(names: &'static [&'static str]) -> Self {
        Self::of(names).operands(Operands::Remove)
    }

    /// One that does this, whatever its words are.
    pub(super) const fn does(names: &'static [&'static str], does: &'static [Deed]) -> Self {
        Self {
            does,
            ..Self::of(names)
        }
    }

    /// Letters that take a value.
    pub(super) const fn values(self, values: &'static str) -> Self {
        Self { values, ..self }
    }

    /// Long names that take a value.
    pub(super) const fn longs(self, longs: &'static [&'static str]) -> Self {
        Self { longs, ..self }
    }

    /// Options with a meaning of their own: letters and long names.
    pub(super) const fn on(self, options: &'static [(&'static str, On)]) -> Self {
        Self { options, ..self }
    }

    /// What happens to its operands.
    pub(super) const fn operands(self, operands: Operands) -> Self {
        Self { operands, ..self }
    }

    /// Its sub-commands; one that is not among them is not known.
    pub(super) const fn subs(self, subs: &'static [Row]) -> Self {
        Self { subs, ..self }
    }

    /// What sub-commands do that have no row.
    pub(super) const fn others(self, others: &'static [Deed]) -> Self {
        Self {
            others: Some(others),
            ..self
        }
    }

    /// Its options are words after one dash.
    pub(super) const fn one_dash(self) -> Self {
        Self {
            words: true,
            ..self
        }
    }

    /// What a row cannot say.
    pub(super) const fn more(self, more: fn(&Call<'_>, &mut Vec<Effect>)) -> Self {
        Self {
            more: Some(more),
            ..self
        }
    }

    /// Whether an option could turn it into something else: one of those written down, or of
    /// those that a program reads which knows its words alone.
    pub(super) fn has_teeth(&self) -> bool {
        let alone = self.more.is_some() && self.options.is_empty() && self.subs.is_empty();
        alone && self.operands == Operands::Text
            || self.options.iter().any(|(_, on)| {
                matches!(
                    on,
                    On::Writes | On::Runs | On::Edits | On::Does(_) | On::With(_)
                )
            })
    }
}
