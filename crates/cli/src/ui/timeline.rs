//! Formats a task as a timeline: one line per event that a person cares about. What strangers said
//! is cut to the terminal; what Checkrein says is wrapped.

use checkrein_core::decision::{Decision, RoundDecision, StopDecision, ToolDecision};
use checkrein_core::effect::Effect;
use checkrein_core::event::{DetectorOrCapResponse, Event};
use checkrein_core::evidence::Verdict;
use checkrein_core::explain::DecisionFactor;
use checkrein_core::ids::UnixMillis;
use checkrein_core::input::{Input, ModelToolCallVerdict};
use checkrein_core::middleware::{MiddlewareAnswer, MiddlewareAnswerFact};

use crate::ui::explanations;
use crate::ui::line::StyledLine;
use crate::ui::printable::escape_to_one_line;
use crate::ui::style::{TextStyle, format_duration, reason_paint};

/// Longest text quoted from agent or person, in characters.
const MAX_QUOTE: usize = 100;

/// Formats a timeline event by event.
#[derive(Debug)]
pub(crate) struct EventTimelineRenderer {
    start: Option<UnixMillis>,
    now: UnixMillis,
    /// Whether events that only begin something are shown too.
    live: bool,
}

impl EventTimelineRenderer {
    /// Creates a renderer. Times count from the first event that has a line.
    pub(crate) fn new(live: bool) -> Self {
        Self {
            start: None,
            now: UnixMillis(0),
            live,
        }
    }

    /// Returns the lines of this event, if it has any: one, unless it is wrapped.
    pub(crate) fn timeline_lines_of_event(&mut self, event: &Event) -> Vec<StyledLine> {
        // Only inputs carry a time; the events that follow from one happened at the same time. A
        // clock that was set back does not make the timeline run backwards.
        if let Event::Input(stamped) = event {
            self.now = self.now.max(stamped.at);
        }
        let told = match event {
            // In a finished task the result says the same; live, a long check would look like a
            // hang.
            Event::Requested { effects, .. } if self.live => checks_running_timeline_entry(effects),
            _ => timeline_entry_of_event(event),
        };
        let Some(told) = told else {
            return Vec::new();
        };
        let start = *self.start.get_or_insert(self.now);
        let at = format!("+{}", format_duration(self.now.millis_since(start)));
        let line = StyledLine::line_from_styled_text(TextStyle::Dim, &format!("{at:>9}"))
            .with_plain_suffix("  ")
            .append_styled_line(told.mark)
            .with_plain_suffix(" ")
            .append_styled_line(told.text);
        match told.layout {
            TimelineEntryWrapping::OneLine => vec![truncate_to_terminal(line)],
            TimelineEntryWrapping::Wrapped => wrap_to_terminal(line),
        }
    }
}

/// Columns before the text of an event.
const TEXT_COLUMN: usize = 13;

/// Formats the heading of a timeline.
pub(crate) fn format_timeline_title(text: &str) -> Vec<StyledLine> {
    let line = StyledLine::line_from_styled_text(TextStyle::Strong, &escape_to_one_line(text));
    match crate::ui::stdout_width() {
        Some(width) => line.wrapped_to_width(width, 2),
        None => vec![line],
    }
}

/// Formats a detail below the text of an event.
pub(crate) fn wrap_event_detail_text(text: &str) -> Vec<StyledLine> {
    let blanks = " ".repeat(TEXT_COLUMN);
    wrap_to_terminal(
        StyledLine::from(&blanks).with_painted_suffix(TextStyle::Dim, &escape_to_one_line(text)),
    )
}

/// Cuts a line to the terminal, if there is one.
fn truncate_to_terminal(line: StyledLine) -> StyledLine {
    match crate::ui::stdout_width() {
        Some(width) => line.truncated_to_width(width),
        None => line,
    }
}

fn wrap_to_terminal(line: StyledLine) -> Vec<StyledLine> {
    match crate::ui::stdout_width() {
        Some(width) => line.wrapped_to_width(width, TEXT_COLUMN),
        None => vec![line],
    }
}

/// Returns the lines for these events, with the time since the first.
pub(crate) fn timeline_lines(events: &[Event]) -> Vec<StyledLine> {
    let mut timeline = EventTimelineRenderer::new(false);
    events
        .iter()
        .flat_map(|event| timeline.timeline_lines_of_event(event))
        .collect()
}

/// The text of an event, and how it is laid out.
struct TimelineEntry {
    mark: StyledLine,
    text: StyledLine,
    layout: TimelineEntryWrapping,
}

/// How much room the text of an event has.
#[derive(Clone, Copy)]
enum TimelineEntryWrapping {
    /// One line, for what agents and persons said; the rest is cut.
    OneLine,
    /// As many lines as needed, for what Checkrein says.
    Wrapped,
}

impl TimelineEntry {
    fn one_line_timeline_entry(mark: StyledLine, text: &str) -> Option<Self> {
        Some(Self {
            mark,
            text: StyledLine::from(&escape_to_one_line(text)),
            layout: TimelineEntryWrapping::OneLine,
        })
    }

    fn word_wrapped_timeline_entry(mark: StyledLine, text: &str) -> Option<Self> {
        Some(Self {
            mark,
            text: StyledLine::from(&escape_to_one_line(text)),
            layout: TimelineEntryWrapping::Wrapped,
        })
    }
}

fn checks_running_timeline_entry(effects: &[Effect]) -> Option<TimelineEntry> {
    let names: Vec<&str> = effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::RunVerifier { verifier, .. } => Some(verifier.as_str()),
            Effect::ReadTree { .. } => None,
        })
        .collect();
    let text = format!("checking: {}", names.join(", "));
    let mark = StyledLine::line_from_styled_text(TextStyle::Dim, "◇");
    TimelineEntry::word_wrapped_timeline_entry(mark, &text).filter(|_| !names.is_empty())
}

fn timeline_entry_of_event(event: &Event) -> Option<TimelineEntry> {
    let plain = |mark: &str, text: String| {
        TimelineEntry::word_wrapped_timeline_entry(StyledLine::from(mark), &text)
    };
    let painted = |paint: TextStyle, mark: &str, text: String| {
        TimelineEntry::word_wrapped_timeline_entry(
            StyledLine::line_from_styled_text(paint, mark),
            &text,
        )
    };
    match event {
        Event::Input(stamped) => match &stamped.input {
            // Adapters submit an empty text where the agent's message has none.
            Input::PromptSubmitted(prompt) if prompt.text.trim().is_empty() => None,
            Input::PromptSubmitted(prompt) => {
                let text = format!("person: {}", truncate_to_one_line(&prompt.text));
                TimelineEntry::one_line_timeline_entry(StyledLine::from("❯"), &text)
            }
            Input::ToolRequested(request) => {
                let text = format!(
                    "{} {}",
                    request.tool,
                    truncate_to_one_line(&main_argument(&request.args))
                );
                TimelineEntry::one_line_timeline_entry(StyledLine::from("·"), &text)
            }
            Input::StopRequested(stop) => {
                let text = format!("agent wants to stop: {}", truncate_to_one_line(&stop.message));
                TimelineEntry::one_line_timeline_entry(
                    StyledLine::line_from_styled_text(TextStyle::Strong, "■"),
                    &text,
                )
            }
            Input::EvidenceArrived(arrived) => {
                let fact = &arrived.evidence;
                let (paint, word) = match fact.verdict {
                    Verdict::Pass => (TextStyle::Good, "passes"),
                    Verdict::Fail => (TextStyle::Bad, "fails"),
                    Verdict::Inconclusive => (TextStyle::Warn, "cannot tell"),
                };
                let exit = fact
                    .exit_code
                    .map_or_else(String::new, |code| format!(", exit code {code}"));
                let took = if fact.cached {
                    ", not run again".to_owned()
                } else {
                    format!(", {}", format_duration(fact.duration_ms))
                };
                let cause = fact.cause.map_or_else(String::new, |cause| {
                    format!(" ({})", explanations::inconclusive_cause_text(cause))
                });
                painted(
                    paint,
                    "◆",
                    format!("{} {word}{cause}{exit}{took}", fact.verifier),
                )
            }
            Input::StopFailed(failed) => painted(
                TextStyle::Bad,
                "✗",
                format!("the agent's turn failed: {}", failed.native_reason),
            ),
            Input::ProcessFailed(failed) => painted(TextStyle::Bad, "✗", failed.what.clone()),
            Input::StanceUsed(used) => painted(
                TextStyle::Warn,
                "!",
                explanations::stance_action_text(used.at, used.stance, &used.why),
            ),
            Input::ConfigEdited(edited) => painted(
                TextStyle::Warn,
                "!",
                format!("edited: {}", edited.paths.join(", ")),
            ),
            Input::PersonAnswered(said) => {
                let (paint, word) = match said.answer.approved {
                    true => (TextStyle::Good, "approved"),
                    false => (TextStyle::Bad, "denied"),
                };
                let why = said.answer.reason.as_deref().map(|why| format!(" ({why})"));
                let why = why.unwrap_or_default();
                let text = format!(
                    "person: {word} {}: {}{why}",
                    said.approval,
                    truncate_to_one_line(&said.what)
                );
                painted(paint, "✋", text)
            }
            Input::Interrupted => painted(TextStyle::Warn, "✗", "Ctrl-C".to_owned()),
            // Results are not shown, except for a layer that did something to one.
            Input::ToolReturned(_) => {
                let speaks = |fact: &&MiddlewareAnswerFact| fact.says != MiddlewareAnswer::Pass;
                let said = stamped.layers.iter().find(speaks)?;
                painted(TextStyle::Warn, "!", explanations::middleware_answer_text(said))
            }
            Input::SessionStarted(_)
            | Input::RoundEnded(_)
            | Input::SessionEnded(_)
            | Input::TreeRead(_)
            | Input::TimePassed => None,
        },
        Event::Detected(detected) if detected.action != DetectorOrCapResponse::Observe => painted(
            TextStyle::Warn,
            "⟳",
            format!("{}: {} times", detected.detector, detected.count),
        ),
        Event::CapReached { cap, .. } => {
            painted(TextStyle::Warn, "!", format!("cap reached: {}", cap.as_str()))
        }
        Event::DecisionMade(made) => match &made.decision {
            // A second model or a layer may have said something about a call that ran, or failed to
            // answer.
            Decision::Tool(ToolDecision::Allow) => {
                let speaks = |because: &&DecisionFactor| match because {
                    DecisionFactor::Veto { says, .. } => *says != ModelToolCallVerdict::Allow,
                    DecisionFactor::Progress { score, .. } => score.is_none(),
                    DecisionFactor::Layer(fact) => fact.says != MiddlewareAnswer::Pass,
                    _ => false,
                };
                let said = made.why.iter().find(speaks)?;
                painted(TextStyle::Warn, "!", explanations::decision_factor_text(said))
            }
            Decision::Noted => None,
            Decision::Round(RoundDecision::Nudge { text }) => {
                painted(TextStyle::Warn, "←", format!("nudge: {text}"))
            }
            Decision::Round(RoundDecision::Halt { reason }) => {
                painted(TextStyle::Bad, "■", format!("halted: {reason}"))
            }
            Decision::Tool(ToolDecision::Nudge { text }) => {
                painted(TextStyle::Warn, "←", format!("nudge: {text}"))
            }
            Decision::Tool(ToolDecision::Rewrite { reason, .. }) => {
                painted(TextStyle::Warn, "←", format!("suggested otherwise: {reason}"))
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
                painted(TextStyle::Warn, "?", format!("{how}: {reason}"))
            }
            Decision::Tool(ToolDecision::Deny { reason }) => {
                painted(TextStyle::Bad, "⛔", format!("denied: {reason}"))
            }
            Decision::Tool(ToolDecision::Halt { reason }) => {
                painted(TextStyle::Bad, "⛔", format!("halted: {reason}"))
            }
            Decision::Stop(StopDecision::Continue { feedback }) => {
                // Sent on by a token target and not by a failing check, so there are no names to
                // list.
                if feedback.target.is_some() {
                    let words = "sent on: its token budget is a target, and there is some left";
                    return painted(TextStyle::Warn, "←", words.to_owned());
                }
                let checks = feedback.checks.iter().map(|check| check.verifier.as_str());
                let layers = feedback.layers.iter().map(|layer| layer.layer.as_str());
                let names: Vec<&str> = checks.chain(layers).collect();
                painted(
                    TextStyle::Warn,
                    "←",
                    format!("sent back: {} not satisfied", names.join(", ")),
                )
            }
            // `TaskEnded` follows and says it better.
            Decision::Stop(StopDecision::Accept { .. } | StopDecision::Halt { .. }) => None,
        },
        Event::TaskEnded { transition, .. } => {
            let paint = reason_paint(transition.reason);
            Some(TimelineEntry {
                mark: StyledLine::line_from_styled_text(paint, "●"),
                text: StyledLine::line_from_styled_text(
                    paint,
                    &escape_to_one_line(&explanations::transition_reason_text(transition)),
                ),
                layout: TimelineEntryWrapping::Wrapped,
            })
        }
        Event::TaskReopened { .. } => plain("○", "work goes on".to_owned()),
        Event::PolicyRenewed { by, .. } => plain("○", format!("sealed anew by {by}")),
        Event::PolicySealed { .. }
        // A repeated delivery is the same stop or call, which has its line already.
        | Event::Repeated { .. }
        | Event::TaskOpened { .. }
        | Event::Detected(_)
        | Event::Requested { .. }
        | Event::FailureSetMet { .. } => None,
    }
}

/// Returns the arguments as a person would say them: the command of a shell tool, the path of a
/// file tool.
pub(crate) fn main_argument(args: &str) -> String {
    let value: serde_json::Value = serde_json::from_str(args).unwrap_or_default();
    ["command", "cmd", "file_path", "path"]
        .iter()
        .find_map(|key| value.get(key).and_then(|word| word.as_str()))
        .map_or_else(|| args.to_owned(), str::to_owned)
}

/// Returns a text in one line, cut to [`MAX_QUOTE`] characters.
pub(crate) fn truncate_to_one_line(text: &str) -> String {
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut chars = line.chars();
    let short: String = chars.by_ref().take(MAX_QUOTE).collect();
    if chars.next().is_some() {
        format!("{short}…")
    } else {
        short
    }
}
