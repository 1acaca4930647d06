//! A task as a story: one line per event that a person cares about. What strangers said is cut to
//! the terminal; what Checkrein says is wrapped.

use checkrein_core::decision::{Decision, StopDecision, ToolDecision};
use checkrein_core::effect::Effect;
use checkrein_core::event::{DetectorOrCapResponse, Event};
use checkrein_core::evidence::Verdict;
use checkrein_core::explain::DecisionFactor;
use checkrein_core::ids::UnixMillis;
use checkrein_core::input::{Input, ModelVetoVerdict};
use checkrein_core::layers::{MiddlewareAnswer, MiddlewareAnswerFact};

use crate::ui::line::Line;
use crate::ui::printable::one_line;
use crate::ui::style::{Paint, duration, of_reason};
use crate::ui::words;

/// Longest text quoted from agent or person, in characters.
const QUOTE: usize = 100;

/// A story that is told event by event.
#[derive(Debug)]
pub(crate) struct Timeline {
    start: Option<UnixMillis>,
    now: UnixMillis,
    /// Also what is only beginning.
    live: bool,
}

impl Timeline {
    /// Times are those since the first event that has a line.
    pub(crate) fn new(live: bool) -> Self {
        Self {
            start: None,
            now: UnixMillis(0),
            live,
        }
    }

    /// The lines of this event, if it has any: one, but for what is wrapped.
    pub(crate) fn lines(&mut self, event: &Event) -> Vec<Line> {
        if let Event::Input(stamped) = event {
            self.now = self.now.max(stamped.at);
        }
        let told = match event {
            Event::Requested { effects, .. } if self.live => checking(effects),
            _ => told_of(event),
        };
        let Some(told) = told else {
            return Vec::new();
        };
        let start = *self.start.get_or_insert(self.now);
        let at = format!("+{}", duration(self.now.millis_since(start)));
        let line = Line::painted(Paint::Dim, &format!("{at:>9}"))
            .with("  ")
            .then(told.mark)
            .with(" ")
            .then(told.text);
        match told.room {
            Room::OneLine => vec![cut(line)],
            Room::Wrapped => wrapped(line),
        }
    }
}

/// Columns before the text of an event.
const LEFT: usize = 13;

/// The heading of a story.
pub(crate) fn title(text: &str) -> Vec<Line> {
    let line = Line::painted(Paint::Strong, &one_line(text));
    match crate::ui::width() {
        Some(width) => line.wrapped(width, 2),
        None => vec![line],
    }
}

/// What an event's line is followed by, below its text.
pub(crate) fn below(text: &str) -> Vec<Line> {
    let blanks = " ".repeat(LEFT);
    wrapped(Line::from(&blanks).with_painted(Paint::Dim, &one_line(text)))
}

/// No wider than the terminal, if there is one.
fn cut(line: Line) -> Line {
    match crate::ui::width() {
        Some(width) => line.cut(width),
        None => line,
    }
}

fn wrapped(line: Line) -> Vec<Line> {
    match crate::ui::width() {
        Some(width) => line.wrapped(width, LEFT),
        None => vec![line],
    }
}

/// Lines for these events, with the time since the first.
pub(crate) fn lines(events: &[Event]) -> Vec<Line> {
    let mut timeline = Timeline::new(false);
    events
        .iter()
        .flat_map(|event| timeline.lines(event))
        .collect()
}

/// What is told of an event.
struct Told {
    mark: Line,
    text: Line,
    room: Room,
}

/// How much room the text of an event has.
#[derive(Clone, Copy)]
enum Room {
    /// What agents and persons said: more of it is not shown.
    OneLine,
    /// What Checkrein says is shown whole.
    Wrapped,
}

impl Told {
    fn quoted(mark: Line, text: &str) -> Option<Self> {
        Some(Self {
            mark,
            text: Line::from(&one_line(text)),
            room: Room::OneLine,
        })
    }

    fn ours(mark: Line, text: &str) -> Option<Self> {
        Some(Self {
            mark,
            text: Line::from(&one_line(text)),
            room: Room::Wrapped,
        })
    }
}

fn checking(effects: &[Effect]) -> Option<Told> {
    let names: Vec<&str> = effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::RunVerifier { verifier, .. } => Some(verifier.as_str()),
            Effect::ReadTree { .. } => None,
        })
        .collect();
    let text = format!("checking: {}", names.join(", "));
    let mark = Line::painted(Paint::Dim, "◇");
    Told::ours(mark, &text).filter(|_| !names.is_empty())
}

fn told_of(event: &Event) -> Option<Told> {
    let plain = |mark: &str, text: String| Told::ours(Line::from(mark), &text);
    let painted =
        |paint: Paint, mark: &str, text: String| Told::ours(Line::painted(paint, mark), &text);
    match event {
        Event::Input(stamped) => match &stamped.input {
            Input::PromptSubmitted(prompt) if prompt.text.trim().is_empty() => None,
            Input::PromptSubmitted(prompt) => {
                let text = format!("person: {}", quote(&prompt.text));
                Told::quoted(Line::from("❯"), &text)
            }
            Input::ToolRequested(request) => {
                let text = format!("{} {}", request.tool, quote(&told(&request.args)));
                Told::quoted(Line::from("·"), &text)
            }
            Input::StopRequested(stop) => {
                let text = format!("agent wants to stop: {}", quote(&stop.message));
                Told::quoted(Line::painted(Paint::Strong, "■"), &text)
            }
            Input::EvidenceArrived(arrived) => {
                let fact = &arrived.evidence;
                let (paint, word) = match fact.verdict {
                    Verdict::Pass => (Paint::Good, "passes"),
                    Verdict::Fail => (Paint::Bad, "fails"),
                    Verdict::Inconclusive => (Paint::Warn, "cannot tell"),
                };
                let exit = fact
                    .exit_code
                    .map_or_else(String::new, |code| format!(", exit code {code}"));
                let took = if fact.cached {
                    ", not run again".to_owned()
                } else {
                    format!(", {}", duration(fact.duration_ms))
                };
                let cause = fact
                    .cause
                    .map_or_else(String::new, |cause| format!(" ({})", words::cause(cause)));
                painted(
                    paint,
                    "◆",
                    format!("{} {word}{cause}{exit}{took}", fact.verifier),
                )
            }
            Input::StopFailed(failed) => painted(
                Paint::Bad,
                "✗",
                format!("the agent's turn failed: {}", failed.native_reason),
            ),
            Input::ProcessFailed(failed) => painted(Paint::Bad, "✗", failed.what.clone()),
            Input::StanceUsed(used) => painted(
                Paint::Warn,
                "!",
                words::stance_used(used.at, used.stance, &used.why),
            ),
            Input::ConfigEdited(edited) => painted(
                Paint::Warn,
                "!",
                format!("edited: {}", edited.paths.join(", ")),
            ),
            Input::PersonAnswered(said) => {
                let (paint, word) = match said.answer.approved {
                    true => (Paint::Good, "approved"),
                    false => (Paint::Bad, "denied"),
                };
                let why = said.answer.reason.as_deref().map(|why| format!(" ({why})"));
                let why = why.unwrap_or_default();
                let text = format!(
                    "person: {word} {}: {}{why}",
                    said.approval,
                    quote(&said.what)
                );
                painted(paint, "✋", text)
            }
            Input::Interrupted => painted(Paint::Warn, "✗", "Ctrl-C".to_owned()),
            Input::ToolReturned(_) => {
                let speaks = |fact: &&MiddlewareAnswerFact| fact.says != MiddlewareAnswer::Pass;
                let said = stamped.layers.iter().find(speaks)?;
                painted(Paint::Warn, "!", words::layer(said))
            }
            Input::SessionStarted(_)
            | Input::RoundEnded(_)
            | Input::SessionEnded(_)
            | Input::TreeRead(_)
            | Input::TimePassed => None,
        },
        Event::Detected(detected) if detected.action != DetectorOrCapResponse::Observe => painted(
            Paint::Warn,
            "⟳",
            format!("{}: {} times", detected.detector, detected.count),
        ),
        Event::CapReached { cap, .. } => {
            painted(Paint::Warn, "!", format!("cap reached: {}", cap.as_str()))
        }
        Event::DecisionMade(made) => match &made.decision {
            // What a second model or a layer said against a call that ran, or did not say.
            Decision::Tool(ToolDecision::Allow) => {
                let speaks = |because: &&DecisionFactor| match because {
                    DecisionFactor::Veto { says, .. } => *says != ModelVetoVerdict::Allow,
                    DecisionFactor::Progress { score, .. } => score.is_none(),
                    DecisionFactor::Layer(fact) => fact.says != MiddlewareAnswer::Pass,
                    _ => false,
                };
                let said = made.why.iter().find(speaks)?;
                painted(Paint::Warn, "!", words::because(said))
            }
            Decision::Noted => None,
            Decision::Tool(ToolDecision::Nudge { text }) => {
                painted(Paint::Warn, "←", format!("nudge: {text}"))
            }
            Decision::Tool(ToolDecision::Rewrite { reason, .. }) => {
                painted(Paint::Warn, "←", format!("suggested otherwise: {reason}"))
            }
            Decision::Tool(ToolDecision::Ask {
                reason,
                approval,
                until,
            }) => {
                let how = match until {
                    Some(_) => format!("parked as {approval}"),
                    None => "asks a person".to_owned(),
                };
                painted(Paint::Warn, "?", format!("{how}: {reason}"))
            }
            Decision::Tool(ToolDecision::Deny { reason }) => {
                painted(Paint::Bad, "⛔", format!("denied: {reason}"))
            }
            Decision::Tool(ToolDecision::Halt { reason }) => {
                painted(Paint::Bad, "⛔", format!("halted: {reason}"))
            }
            Decision::Stop(StopDecision::Continue { feedback }) => {
                if feedback.target.is_some() {
                    let words = "sent on: its token budget is a target, and there is some left";
                    return painted(Paint::Warn, "←", words.to_owned());
                }
                let checks = feedback.checks.iter().map(|check| check.verifier.as_str());
                let layers = feedback.layers.iter().map(|layer| layer.layer.as_str());
                let names: Vec<&str> = checks.chain(layers).collect();
                painted(
                    Paint::Warn,
                    "←",
                    format!("sent back: {} not satisfied", names.join(", ")),
                )
            }
            Decision::Stop(StopDecision::Accept { .. } | StopDecision::Halt { .. }) => None,
        },
        Event::TaskEnded { transition, .. } => {
            let paint = of_reason(transition.reason);
            Some(Told {
                mark: Line::painted(paint, "●"),
                text: Line::painted(paint, &one_line(&words::transition(transition))),
                room: Room::Wrapped,
            })
        }
        Event::TaskReopened { .. } => plain("○", "work goes on".to_owned()),
        Event::PolicyRenewed { by, .. } => plain("○", format!("sealed anew by {by}")),
        Event::PolicySealed { .. }
        | Event::Repeated { .. }
        | Event::TaskOpened { .. }
        | Event::Detected(_)
        | Event::Requested { .. }
        | Event::FailureSetMet { .. } => None,
    }
}

/// Arguments as a person would say them: the command of a shell tool, the path of a file tool.
pub(crate) fn told(args: &str) -> String {
    let value: serde_json::Value = serde_json::from_str(args).unwrap_or_default();
    ["command", "cmd", "file_path", "path"]
        .iter()
        .find_map(|key| value.get(key).and_then(|word| word.as_str()))
        .map_or_else(|| args.to_owned(), str::to_owned)
}

/// One line, bounded.
pub(crate) fn quote(text: &str) -> String {
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut chars = line.chars();
    let short: String = chars.by_ref().take(QUOTE).collect();
    if chars.next().is_some() {
        format!("{short}…")
    } else {
        short
    }
}
