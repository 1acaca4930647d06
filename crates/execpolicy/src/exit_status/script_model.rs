//! A shell script reduced to what decides how it ends: the syntax tree without its details.

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use super::expansion::ShellWordPieces;

/// A part of a script.
#[derive(Debug)]
pub(super) enum ScriptNode {
    Command(SimpleCommand),
    /// `a=b c=$(d)`; `declares`: `local a=$(b)`, whose status is its own.
    Assign {
        assignments: Vec<VariableAssignment>,
        declares: bool,
        /// Whether only bash and its like know this form.
        in_bash: bool,
    },
    Sequence(Vec<ScriptNode>),
    And(Box<ScriptNode>, Box<ScriptNode>),
    Or(Box<ScriptNode>, Box<ScriptNode>),
    Not(Box<ScriptNode>),
    Pipe(Vec<ScriptNode>),
    Subshell(Box<ScriptNode>),
    /// Conditions, each with what runs if it holds.
    If {
        arms: Vec<(ScriptNode, ScriptNode)>,
        otherwise: Option<Box<ScriptNode>>,
    },
    While {
        until: bool,
        condition: Box<ScriptNode>,
        body: Box<ScriptNode>,
    },
    For {
        variable: String,
        rounds: LoopIterations,
        body: Box<ScriptNode>,
    },
    /// Alternatives of patterns, each with what runs.
    Case {
        word: ShellWordPieces,
        arms: Vec<(Vec<String>, ScriptNode)>,
    },
    Background(Box<ScriptNode>),
    /// `a &> b`: in `sh` it runs in the background.
    BothOutputs(Box<ScriptNode>),
    /// `[ a = b ]`, `[[ a == b ]]`.
    Test {
        words: Vec<ShellWordPieces>,
        in_bash: bool,
    },
    /// `((a++))`.
    Arithmetic(String),
    /// A definition: it runs where it is called.
    Function,
    /// It may end in any way.
    Unknown,
}

/// A simple command.
#[derive(Debug)]
pub(super) struct SimpleCommand {
    /// Where it stands in the script; `usize::MAX` in the text of a trap or of `eval`.
    pub(super) at: usize,
    pub(super) words: Vec<ShellWordPieces>,
    /// `$(a)` among its words.
    pub(super) substitutions: Vec<ScriptNode>,
}

#[derive(Debug)]
pub(super) struct VariableAssignment {
    pub(super) name: String,
    /// Its value; an unknown expansion if nothing is known of it.
    pub(super) value: ShellWordPieces,
    pub(super) appends: bool,
    pub(super) substitutions: Vec<ScriptNode>,
}

/// How often a `for` loop runs.
#[derive(Debug)]
pub(super) enum LoopIterations {
    /// Once for each of these words.
    Words(Vec<String>),
    /// At least once: a pattern of file names stands for itself where nothing fits.
    Some,
    /// Perhaps not at all.
    Any,
}

/// A function, and the variables that are its own.
#[derive(Debug, Clone)]
pub(super) struct ShellFunction {
    pub(super) body: Rc<ScriptNode>,
    pub(super) local_variables: Rc<BTreeSet<String>>,
}

/// A script with its functions.
#[derive(Debug)]
pub(super) struct ParsedShellScript {
    pub(super) code: ScriptNode,
    pub(super) functions: HashMap<String, ShellFunction>,
    /// How many commands it has.
    pub(super) size: usize,
    /// Names that are used other than to assign a value to them.
    pub(super) reads: BTreeSet<String>,
}

impl ParsedShellScript {
    /// Returns the variables that get a value exactly once, with that value.
    pub(super) fn constant_variables(&self) -> HashMap<String, String> {
        let mut assignments = Vec::new();
        self.code.collect_script_assignments(&mut assignments);
        // A function can assign variables of the whole script.
        for function in self.functions.values() {
            function.body.collect_script_assignments(&mut assignments);
        }
        let mut constants: HashMap<String, Option<String>> = HashMap::new();
        for one in assignments {
            let value = one.value.literal_text().filter(|_| !one.appends);
            // A second assignment makes the value unknown.
            let known = constants.entry(one.name.clone());
            known.and_modify(|value| *value = None).or_insert(value);
        }
        let known = constants
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?)));
        known.collect()
    }

    /// Returns all of its commands.
    pub(super) fn all_script_commands(&self) -> Vec<&SimpleCommand> {
        let mut commands = Vec::new();
        self.code.collect_script_commands(&mut commands);
        for function in self.functions.values() {
            function.body.collect_script_commands(&mut commands);
        }
        commands
    }

    /// Returns whether there is a command at each of these places.
    pub(super) fn has_commands_at_offsets(&self, places: &[usize]) -> bool {
        let commands = self.all_script_commands();
        let has = |at: &usize| commands.iter().any(|command| command.at == *at);
        places.iter().all(has)
    }
}

impl ScriptNode {
    /// Collects all commands in it; functions are not entered.
    pub(super) fn collect_script_commands<'c>(&'c self, found: &mut Vec<&'c SimpleCommand>) {
        if let Self::Command(command) = self {
            found.push(command);
        }
        for part in self.child_nodes() {
            part.collect_script_commands(found);
        }
    }

    /// Collects all assignments in it; functions are not entered.
    pub(super) fn collect_script_assignments<'c>(
        &'c self,
        found: &mut Vec<&'c VariableAssignment>,
    ) {
        if let Self::Assign { assignments, .. } = self {
            found.extend(assignments);
        }
        for part in self.child_nodes() {
            part.collect_script_assignments(found);
        }
    }

    fn child_nodes(&self) -> Vec<&Self> {
        match self {
            Self::Command(command) => command.substitutions.iter().collect(),
            Self::Assign { assignments, .. } => assignments
                .iter()
                .flat_map(|one| &one.substitutions)
                .collect(),
            Self::Sequence(parts) | Self::Pipe(parts) => parts.iter().collect(),
            Self::And(left, right) | Self::Or(left, right) => vec![left, right],
            Self::Not(inner)
            | Self::Subshell(inner)
            | Self::Background(inner)
            | Self::BothOutputs(inner) => vec![inner],
            Self::If { arms, otherwise } => {
                let arms = arms.iter().flat_map(|(asked, body)| [asked, body]);
                arms.chain(otherwise.as_deref()).collect()
            }
            Self::While {
                condition, body, ..
            } => vec![condition, body],
            Self::For { body, .. } => vec![body],
            Self::Case { arms, .. } => arms.iter().map(|(_, code)| code).collect(),
            Self::Test { .. } | Self::Arithmetic(_) | Self::Function | Self::Unknown => Vec::new(),
        }
    }
}
