//! The errors of rules files, with file and line.

/// Why rule files cannot be compiled.
#[derive(Debug, thiserror::Error)]
pub enum RulesCompileError {
    /// A file is larger than any policy needs to be.
    #[error("{file}: larger than {limit} bytes")]
    TooLarge {
        /// Its name.
        file: String,
        /// The bound, in bytes.
        limit: usize,
    },
    /// An expression or block is nested deeper than can be read safely.
    #[error("{file}:{line}: nested too deep, or an expression of too many parts")]
    TooComplex {
        /// Its name.
        file: String,
        /// From 1.
        line: usize,
    },
    /// Starlark refused it, or one of the builtins did.
    #[error("{file}:{line}: starlark error: {what}")]
    Starlark {
        /// Its name.
        file: String,
        /// From 1.
        line: usize,
        /// The message.
        what: String,
        /// The message with the call stack and the line itself.
        trace: String,
    },
    /// A rule does not do what its examples say.
    #[error("{file}:{line}: {what}")]
    Rule {
        /// Its name.
        file: String,
        /// The line of the call, from 1.
        line: usize,
        /// The message.
        what: String,
    },
    /// Evaluation was stopped.
    #[error("evaluation takes too many steps or too much memory")]
    LimitExceeded,
    /// No thread to compile in.
    #[error("no thread to compile rules in")]
    Thread(#[source] std::io::Error),
    /// The evaluator itself failed.
    #[error("the rules evaluator crashed")]
    Crash,
}

impl RulesCompileError {
    pub(super) fn from_starlark_error(file: &str, error: &starlark::Error) -> Self {
        // Starlark counts lines from 0.
        let (file, line) = match error.span() {
            Some(span) => (
                span.filename().to_owned(),
                span.resolve_span().begin.line + 1,
            ),
            None => (file.to_owned(), 1),
        };
        Self::Starlark {
            file,
            line,
            what: error.without_diagnostic().to_string(),
            trace: error.to_string(),
        }
    }

    /// Returns the file that is wrong, if it is a file.
    pub fn rules_file_with_error(&self) -> Option<&str> {
        match self {
            Self::TooLarge { file, .. }
            | Self::TooComplex { file, .. }
            | Self::Starlark { file, .. }
            | Self::Rule { file, .. } => Some(file),
            Self::LimitExceeded | Self::Thread(_) | Self::Crash => None,
        }
    }

    /// Returns the cause in the words that Codex uses for a file that it cannot read.
    pub fn codex_rules_error_text(&self) -> String {
        match self {
            Self::Starlark { trace, .. } => format!("starlark error: {trace}"),
            Self::Rule { what, .. } => what.clone(),
            Self::TooLarge { .. }
            | Self::TooComplex { .. }
            | Self::LimitExceeded
            | Self::Thread(_)
            | Self::Crash => self.to_string(),
        }
    }
}
