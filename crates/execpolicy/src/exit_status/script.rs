//! A shell script as far as it matters how it ends: the syntax tree without its details.

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use super::expansion::Expansion;

/// A part of a script.
#[derive(Debug)]
pub(super) enum Code {
    Command(Command),
    /// `a=b c=$(d)`; `declares`: `local a=$(b)`, whose status is its own.
    Assign {
        assignments: Vec<Assignment>,
        declares: bool,
        /// Only bash and its like know how that is written.
        in_bash: bool,
    },
    Sequence(Vec<Code>),
    And(Box<Code>, Box<Code>),
    Or(Box<Code>, Box<Code>),
    Not(Box<Code>),
    Pipe(Vec<Code>),
    Subshell(Box<Code>),
    /// Conditions, each with what runs if it holds.
    If {
        arms: Vec<(Code, Code)>,
        otherwise: Option<Box<Code>>,
    },
    While {
        until: bool,
        condition: Box<Code>,
        body: Box<Code>,
    },
    For {
        variable: String,
        rounds: Rounds,
        body: Box<Code>,
    },
    /// Alternatives of patterns, each with what runs.
    Case {
        word: Expansion,
        arms: Vec<(Vec<String>, Code)>,
    },
    Background(Box<Code>),
    /// `a &> b`: in `sh` it runs in the background.
    BothOutputs(Box<Code>),
    /// `[ a = b ]`, `[[ a == b ]]`.
    Test {
        words: Vec<Expansion>,
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
pub(super) struct Command {
    /// Where it stands in the script; `usize::MAX` in the text of a trap or of `eval`.
    pub(super) at: usize,
    pub(super) words: Vec<Expansion>,
    /// `$(a)` among its words.
    pub(super) inner: Vec<Code>,
}

#[derive(Debug)]
pub(super) struct Assignment {
    pub(super) name: String,
    /// `None`: nothing is known of it.
    pub(super) value: Expansion,
    pub(super) appends: bool,
    pub(super) inner: Vec<Code>,
}

/// How often a `for` loop runs.
#[derive(Debug)]
pub(super) enum Rounds {
    /// Once for each of these words.
    Words(Vec<String>),
    /// At least once: a pattern of file names stands for itself where nothing fits.
    Some,
    /// Perhaps not at all.
    Any,
}

/// A function, and the variables that are its own.
#[derive(Debug, Clone)]
pub(super) struct Function {
    pub(super) body: Rc<Code>,
    pub(super) own: Rc<BTreeSet<String>>,
}

/// A script with its functions.
#[derive(Debug)]
pub(super) struct Script {
    pub(super) code: Code,
    pub(super) functions: HashMap<String, Function>,
    /// How many commands it has.
    pub(super) size: usize,
    /// Names that stand somewhere without a value being given to them.
    pub(super) reads: BTreeSet<String>,
}

impl Script {
    /// Variables that get a value once, and which.
    pub(super) fn constants(&self) -> HashMap<String, String> {
        let mut assignments = Vec::new();
        self.code.assignments(&mut assignments);
        for function in self.functions.values() {
            function.body.assignments(&mut assignments);
        }
        let mut constants: HashMap<String, Option<String>> = HashMap::new();
        for one in assignments {
            let value = one.value.literal().filter(|_| !one.appends);
            let known = constants.entry(one.name.clone());
            known.and_modify(|value| *value = None).or_insert(value);
        }
        let known = constants
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?)));
        known.collect()
    }

    /// All of its commands.
    pub(super) fn commands(&self) -> Vec<&Command> {
        let mut commands = Vec::new();
        self.code.commands(&mut commands);
        for function in self.functions.values() {
            function.body.commands(&mut commands);
        }
        commands
    }

    /// Whether there is a command at each of these places.
    pub(super) fn has_all(&self, places: &[usize]) -> bool {
        let commands = self.commands();
        let has = |at: &usize| commands.iter().any(|command| command.at == *at);
        places.iter().all(has)
    }
}

impl Code {
    /// All commands in it, functions apart.
    pub(super) fn commands<'c>(&'c self, found: &mut Vec<&'c Command>) {
        if let Self::Command(command) = self {
            found.push(command);
        }
        for part in self.parts() {
            part.commands(found);
        }
    }

    /// All assignments in it, functions apart.
    pub(super) fn assignments<'c>(&'c self, found: &mut Vec<&'c Assignment>) {
        if let Self::Assign { assignments, .. } = self {
            found.extend(assignments);
        }
        for part in self.parts() {
            part.assignments(found);
        }
    }

    fn parts(&self) -> Vec<&Self> {
        match self {
            Self::Command(command) => command.inner.iter().collect(),
            Self::Assign { assignments, .. } => {
                assignments.iter().flat_map(|one| &one.inner).collect()
            }
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
