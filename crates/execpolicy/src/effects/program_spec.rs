//! Defines [`ProgramEffectSpec`], the row that describes one program: which options take a value, what
//! options do, what happens to the operands, and the kinds of effect. Rows are constants;
//! nothing is built at run time.

use super::CommandEffect;
use super::inert::ProgramDryRunOption;
use super::parsed_args::ParsedArgs;

/// What a command does besides reading and writing the files that it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum NonFileEffectKind {
    /// Reaches the network, mostly to fetch something.
    Network,
    /// Installs packages.
    Installs,
    /// Runs code of the project: build scripts, tests, its own programs.
    Opaque,
    /// Moves the whole tree to another recorded state: another branch, a merge, a stash.
    MovesTree,
    /// Runs something on another machine, or in another tree.
    RemoteExecution,
    /// Sends files to another machine.
    Uploads,
    /// Gives something to others for good: a package, a release, a deployment.
    Publishes,
    /// Replaces or removes what others have.
    OverwritesShared,
    /// Changes services that others may use.
    Deploys,
    /// Acts in the name of the person where others read it: closes, locks, comments.
    SpeaksForPerson,
    /// Rewrites a repository's whole history, or drops what only the reflog kept.
    RewritesHistory,
    /// Moves or drops refs; the commits that they named can still be found.
    MovesRefs,
    /// Discards work that exists nowhere else.
    DiscardsWork,
    /// Skips or switches off checks.
    SkipsChecks,
    /// Acts with the rights of another account, or gives rights away.
    Privilege,
    /// Keeps running, or starts again, after the agent has ended.
    Persists,
    /// Destroys data or services outside of the project's tree.
    DestroysData,
    /// Destroys what is on a disk.
    WipesDisk,
    /// Stops or restarts the machine.
    ShutsDownMachine,
    /// Changes the machine: mounts, processes of others, its network, its power.
    ChangesMachine,
    /// Shows a secret, or passes it on.
    ExposesSecret,
    /// Changes the owner or the permissions of many files.
    ChangesModes,
    /// Runs code that cannot be read beforehand.
    UnreadableCode,
    /// Options that are known only at run time.
    UnknownOptions,
    /// No row describes the program.
    UnknownProgram,
}

impl NonFileEffectKind {
    /// Whether it is ordinary work that goes beyond the project's files.
    pub(crate) fn is_effect_beyond_project_files(self) -> bool {
        matches!(self, Self::Network | Self::Installs | Self::MovesTree)
    }

    /// Why it is refused where the policy forbids destruction.
    pub(crate) fn destruction_reason(self) -> Option<&'static str> {
        match self {
            // Every kind is listed, without a wildcard, so that a new one must be decided on here.
            Self::WipesDisk | Self::ShutsDownMachine => self.prompt_reason(true),
            Self::Network
            | Self::Installs
            | Self::Opaque
            | Self::MovesTree
            | Self::RemoteExecution
            | Self::Uploads
            | Self::Publishes
            | Self::OverwritesShared
            | Self::Deploys
            | Self::SpeaksForPerson
            | Self::RewritesHistory
            | Self::MovesRefs
            | Self::DiscardsWork
            | Self::SkipsChecks
            | Self::Privilege
            | Self::Persists
            | Self::DestroysData
            | Self::ChangesMachine
            | Self::ExposesSecret
            | Self::ChangesModes
            | Self::UnreadableCode
            | Self::UnknownOptions
            | Self::UnknownProgram => None,
        }
    }

    /// Why a person is asked about it where the policy asks about hazards, and what to do instead.
    /// A hazard affects others and cannot be taken back.
    pub(crate) fn hazard_reason(self) -> Option<&'static str> {
        Some(match self {
            Self::Publishes => {
                "hands something to others that is hard to take back: leave that to the person"
            }
            Self::OverwritesShared => {
                "replaces or removes what others have: add to it instead (a new commit, a new \
                 version), or leave that to the person"
            }
            Self::Deploys => "changes services that others may use: leave that to the person",
            Self::RewritesHistory => "rewrites or drops history: leave that to the person",
            Self::Network
            | Self::Installs
            | Self::Opaque
            | Self::MovesTree
            | Self::RemoteExecution
            | Self::Uploads
            | Self::SpeaksForPerson
            | Self::MovesRefs
            | Self::DiscardsWork
            | Self::SkipsChecks
            | Self::Privilege
            | Self::Persists
            | Self::DestroysData
            | Self::WipesDisk
            | Self::ShutsDownMachine
            | Self::ChangesMachine
            | Self::ExposesSecret
            | Self::ChangesModes
            | Self::UnreadableCode
            | Self::UnknownOptions
            | Self::UnknownProgram => return None,
        })
    }

    /// Why a person is asked; `None` for ordinary work. `opaque`: ask about unread code, too.
    pub(crate) fn prompt_reason(self, opaque: bool) -> Option<&'static str> {
        Some(match self {
            // Fetching, installing and changing branches is what agents do all day.
            Self::Network | Self::Installs | Self::MovesTree => return None,
            Self::Opaque if !opaque => return None,
            Self::Opaque => "runs code that is not read beforehand",
            Self::RemoteExecution => "runs something on another machine",
            Self::Uploads => "sends files to another machine",
            Self::Publishes => "hands something to others that is hard to take back",
            Self::OverwritesShared => "replaces or removes what others have",
            Self::Deploys => "changes services that others may use",
            Self::SpeaksForPerson => "speaks for the person where others read it",
            Self::RewritesHistory | Self::MovesRefs => "rewrites or drops history",
            Self::DiscardsWork => "throws away work that may be nowhere else",
            Self::SkipsChecks => "skips or switches off checks",
            Self::Privilege => "acts with another account's rights, or changes rights",
            Self::Persists => "goes on or comes back after this work has ended",
            Self::DestroysData => "destroys data or services outside the project's tree",
            Self::WipesDisk => "destroys what is on a disk",
            Self::ShutsDownMachine => "stops the machine, or all that runs on it",
            Self::ChangesMachine => "changes the machine itself",
            Self::ExposesSecret => "shows or hands on a secret",
            Self::ChangesModes => "changes the rights of many files at once",
            Self::UnreadableCode => "runs code that cannot be read beforehand",
            Self::UnknownOptions => "has options that only the run knows",
            Self::UnknownProgram => "is not a command that this build knows",
        })
    }
}

/// What an option means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OptionMeaning {
    /// Its value is a text.
    Value,
    /// Its value names a file that is read.
    Reads,
    /// Its value names a file that is written.
    Writes,
    /// Its value names a folder into which the operands are put.
    TargetDir,
    /// Its value names the folder that file names are relative to.
    WorkingDir,
    /// Its value is a command.
    Command,
    /// The operands are edited in place; its value can only be attached, as with `sed -i.bak`.
    Edits,
    /// Its value is the program or pattern, so that all operands are files that are read.
    ProgramText,
    /// It takes no value and has this effect.
    FlagEffect(NonFileEffectKind),
    /// It takes a value and has this effect.
    ValueEffect(NonFileEffectKind),
    /// A dry run: nothing but a message, if the program is certain to read the option as this one.
    Inert(&'static ProgramDryRunOption),
}

impl OptionMeaning {
    /// Whether the next word is its value.
    pub(super) fn option_takes_value(self) -> bool {
        matches!(
            self,
            Self::Value
                | Self::Reads
                | Self::Writes
                | Self::TargetDir
                | Self::WorkingDir
                | Self::Command
                | Self::ProgramText
                | Self::ValueEffect(_)
        )
    }
}

/// What happens to the operands, the words that are no options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OperandRole {
    /// They name no files.
    Text,
    /// They are read.
    Read,
    /// Only their names and metadata are shown.
    List,
    /// They are written or made.
    Write,
    /// They are written, and their content is lost.
    Replace,
    /// They are removed.
    Remove,
    /// All but the last are read. The last is written, or is the folder that they are put into.
    Copy,
    /// All but the last are removed. The last is written, or is the folder that they are put into.
    Move,
    /// The first is a pattern or a program, the others are read.
    PatternThenRead,
    /// The first is read, the second written.
    ReadThenWrite,
    /// There should be none; with an operand it is not known what happens.
    None,
}

/// A program, or one of its sub-commands.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProgramEffectSpec {
    pub(super) names: &'static [&'static str],
    pub(super) value_letters: &'static str,
    pub(super) value_options: &'static [&'static str],
    pub(super) option_meanings: &'static [(&'static str, OptionMeaning)],
    pub(super) operand_role: OperandRole,
    pub(super) effects: &'static [NonFileEffectKind],
    pub(super) subcommands: &'static [ProgramEffectSpec],
    pub(super) other_subcommands: Option<&'static [NonFileEffectKind]>,
    pub(super) single_dash: bool,
    pub(super) handler: Option<fn(&ParsedArgs<'_>, &mut Vec<CommandEffect>)>,
}

impl ProgramEffectSpec {
    /// Returns a row for a program that does nothing to files.
    pub(super) const fn new(names: &'static [&'static str]) -> Self {
        Self {
            names,
            value_letters: "",
            value_options: &[],
            option_meanings: &[],
            operand_role: OperandRole::Text,
            effects: &[],
            subcommands: &[],
            other_subcommands: None,
            single_dash: false,
            handler: None,
        }
    }

    /// Returns a row for a program that reads its operands.
    pub(super) const fn program_spec_reading_operands(names: &'static [&'static str]) -> Self {
        Self::new(names).with_operand_role(OperandRole::Read)
    }

    /// Returns a row for a program that writes its operands.
    pub(super) const fn program_spec_writing_operands(names: &'static [&'static str]) -> Self {
        Self::new(names).with_operand_role(OperandRole::Write)
    }

    /// Returns a row for a program that removes its operands.
    pub(super) const fn program_spec_removing_operands(names: &'static [&'static str]) -> Self {
        Self::new(names).with_operand_role(OperandRole::Remove)
    }

    /// Returns a row for a program that has these effects, whatever its words are.
    pub(super) const fn program_spec_with_fixed_effects(
        names: &'static [&'static str],
        does: &'static [NonFileEffectKind],
    ) -> Self {
        Self {
            effects: does,
            ..Self::new(names)
        }
    }

    /// Sets the letters that take a value.
    pub(super) const fn with_short_value_options(self, values: &'static str) -> Self {
        Self {
            value_letters: values,
            ..self
        }
    }

    /// Sets the long options that take a value.
    pub(super) const fn with_long_value_options(self, longs: &'static [&'static str]) -> Self {
        Self {
            value_options: longs,
            ..self
        }
    }

    /// Sets options with a meaning of their own: letters and long names.
    pub(super) const fn with_option_meanings(
        self,
        options: &'static [(&'static str, OptionMeaning)],
    ) -> Self {
        Self {
            option_meanings: options,
            ..self
        }
    }

    /// Sets what happens to its operands.
    pub(super) const fn with_operand_role(self, operands: OperandRole) -> Self {
        Self {
            operand_role: operands,
            ..self
        }
    }

    /// Sets its sub-commands; any other sub-command is unknown.
    pub(super) const fn with_subcommands(self, subs: &'static [ProgramEffectSpec]) -> Self {
        Self {
            subcommands: subs,
            ..self
        }
    }

    /// Sets the effects of sub-commands without a row.
    pub(super) const fn with_unlisted_subcommand_effects(
        self,
        others: &'static [NonFileEffectKind],
    ) -> Self {
        Self {
            other_subcommands: Some(others),
            ..self
        }
    }

    /// Declares that long options follow a single dash.
    pub(super) const fn with_single_dash_long_options(self) -> Self {
        Self {
            single_dash: true,
            ..self
        }
    }

    /// Sets a handler, for what a row cannot express.
    pub(super) const fn with_extra_effects_fn(
        self,
        more: fn(&ParsedArgs<'_>, &mut Vec<CommandEffect>),
    ) -> Self {
        Self {
            handler: Some(more),
            ..self
        }
    }

    /// Whether some option has an effect of its own: one of the row, or one that the handler looks
    /// for in a row without options.
    pub(super) fn spec_has_dangerous_options(&self) -> bool {
        // A handler that reads the words itself may look for options that the row does not list.
        let alone = self.handler.is_some()
            && self.option_meanings.is_empty()
            && self.subcommands.is_empty();
        alone && self.operand_role == OperandRole::Text
            || self.option_meanings.iter().any(|(_, on)| {
                matches!(
                    on,
                    OptionMeaning::Writes
                        | OptionMeaning::Command
                        | OptionMeaning::Edits
                        | OptionMeaning::FlagEffect(_)
                        | OptionMeaning::ValueEffect(_)
                )
            })
    }
}
