//! Names and numbers as newtypes. Names of verifiers, detectors and agents are open strings: `core`
//! lists none of them, so a new one needs no new type here.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! name {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Wraps a name as it is written in config, logs and JSON.
            pub fn new(name: impl Into<String>) -> Self {
                Self(name.into())
            }

            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl From<&str> for $name {
            fn from(name: &str) -> Self {
                Self(name.to_owned())
            }
        }
    };
}

name!(
    /// One conversation with an agent, as the agent identifies it.
    SessionId
);
name!(
    /// A verifier's name, as in `[[verifier]] name` and in `accept`.
    VerifierName
);
name!(
    /// A loop detector's name, as in `[loops]` and in transitions.
    DetectorName
);
name!(
    /// A layer of middleware's name, as in `[[middleware]] name`.
    LayerName
);
name!(
    /// An agent's name, as in `checkrein hook AGENT`.
    AgentName
);
name!(
    /// A sub-agent inside its session's log; the main conversation is [`ScopeId::main_scope`].
    ScopeId
);
name!(
    /// Which installed hook entry delivered an input: `user`, `project`, `run`.
    SourceName
);

impl ScopeId {
    /// The scope of the main conversation.
    pub fn main_scope() -> Self {
        // Logs record the main conversation as the empty id.
        Self(String::new())
    }

    /// Returns whether this is the main conversation, not a sub-agent.
    pub fn is_main_scope(&self) -> bool {
        self.0.is_empty()
    }
}

/// Position of an event in its session's log; the first is 1, there are no gaps.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct EventSeq(pub u64);

impl EventSeq {
    /// The position after this one.
    pub fn successor_seq(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for EventSeq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Ordinal of a task within its session; the first is 1.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct TaskId(pub u32);

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Milliseconds since the Unix epoch, stamped by the runtime's only clock.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct UnixMillis(pub u64);

impl UnixMillis {
    /// Milliseconds from `earlier` to `self`; 0 if `earlier` is later.
    pub fn millis_since(self, earlier: UnixMillis) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}
