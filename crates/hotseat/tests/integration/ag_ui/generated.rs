//! Random conversations, written as event streams in random styles, must record the same trace in every
//! style.

use std::sync::Mutex;

use hotseat_testkit::agui::FakeRun;
use hotseat_testkit::{FakeAgent, FakeRequest};
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};

use super::fixture::{ConversationOutcome, TestConversation, messages};

/// A conversation and its event styles.
#[derive(Debug, Clone)]
struct ConversationPlan {
    turns: Vec<PlannedTurn>,
    /// Restarts ids in each turn.
    numbered_by_turn: bool,
    /// Naming of messages and calls in snapshots.
    foreign_messages: bool,
    foreign_calls: bool,
}

#[derive(Debug, Clone)]
struct PlannedTurn {
    items: Vec<TurnItem>,
    /// Ends with a snapshot of the whole conversation.
    snapshot: bool,
    /// Selects the item that continues next, while there are several.
    order: Vec<Index>,
    /// Unrelated events and their positions.
    noise: Vec<(Index, UnrelatedEvent)>,
}

/// An item of a turn.
#[derive(Debug, Clone)]
enum TurnItem {
    Text { style: EventStyle },
    Call { tool: &'static str, number: u8, result: Option<(u8, bool)>, style: EventStyle },
}

/// Event style of an item.
#[derive(Debug, Clone)]
enum EventStyle {
    /// Start, deltas, end.
    Events(Vec<Index>),
    /// Chunks.
    Chunks(Vec<Index>),
    /// Only in the snapshot.
    Snapshot,
}

#[derive(Debug, Clone, Copy)]
enum UnrelatedEvent {
    Raw,
    Unknown,
    Custom,
    State,
    Step,
    Activity,
}

/// Events that must stay adjacent.
type Block = Vec<Value>;

impl ConversationPlan {
    fn call_id(&self, turn: usize, item: usize) -> String {
        if self.numbered_by_turn { format!("call-{item}") } else { format!("call-{turn}-{item}") }
    }

    fn message_id(&self, turn: usize, item: usize) -> String {
        if self.numbered_by_turn { format!("message-{item}") } else { format!("message-{turn}-{item}") }
    }

    /// Arguments, distinct for calls that could otherwise be confused.
    fn arguments(&self, turn: usize, item: usize, number: u8) -> Value {
        let apart = self.numbered_by_turn || self.foreign_calls;
        let mark = if apart { turn * 10 + item } else { 0 };
        json!({"n": number, "mark": mark, "text": "é \"你好\" 🌍\n"})
    }

    fn text(turn: usize, item: usize) -> String {
        format!("Text {item} of turn {turn}: \"你好\" 🌍.")
    }

    /// Blocks of events for an item, and those for its result.
    fn item_blocks(&self, turn: usize, place: usize) -> Vec<Block> {
        let (call, message) = (self.call_id(turn, place), self.message_id(turn, place));
        match &self.turns[turn].items[place] {
            TurnItem::Text { style } => match self.effective_style(turn, style) {
                EventStyle::Snapshot => Vec::new(),
                EventStyle::Events(cuts) => {
                    let deltas = pieces(&ConversationPlan::text(turn, place), &cuts);
                    let delta = |delta: String| {
                        vec![json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": message, "delta": delta})]
                    };
                    let start = vec![
                        json!({"type": "TEXT_MESSAGE_START", "messageId": message, "role": "assistant"}),
                    ];
                    let end = vec![json!({"type": "TEXT_MESSAGE_END", "messageId": message})];
                    [start].into_iter().chain(deltas.into_iter().map(delta)).chain([end]).collect()
                }
                EventStyle::Chunks(cuts) => {
                    let deltas = pieces(&ConversationPlan::text(turn, place), &cuts).into_iter().enumerate();
                    let chunk = |(number, delta): (usize, String)| match number {
                        0 => {
                            json!({"type": "TEXT_MESSAGE_CHUNK", "messageId": message, "role": "assistant", "delta": delta})
                        }
                        n if n % 2 == 0 => {
                            json!({"type": "TEXT_MESSAGE_CHUNK", "messageId": message, "delta": delta})
                        }
                        _ => json!({"type": "TEXT_MESSAGE_CHUNK", "delta": delta}),
                    };
                    vec![deltas.map(chunk).collect()]
                }
            },
            TurnItem::Call { tool, number, result, style } => {
                let arguments = self.arguments(turn, place, *number).to_string();
                let mut blocks: Vec<Block> = match self.effective_style(turn, style) {
                    EventStyle::Snapshot => return Vec::new(),
                    EventStyle::Events(cuts) => {
                        let deltas = pieces(&arguments, &cuts);
                        let delta = |delta: String| {
                            vec![json!({"type": "TOOL_CALL_ARGS", "toolCallId": call, "delta": delta})]
                        };
                        let start = vec![
                            json!({"type": "TOOL_CALL_START", "toolCallId": call, "toolCallName": tool}),
                        ];
                        let end = vec![json!({"type": "TOOL_CALL_END", "toolCallId": call})];
                        [start].into_iter().chain(deltas.into_iter().map(delta)).chain([end]).collect()
                    }
                    EventStyle::Chunks(cuts) => {
                        let deltas = pieces(&arguments, &cuts).into_iter().enumerate();
                        let chunk = |(number, delta): (usize, String)| match number {
                            0 => {
                                json!({"type": "TOOL_CALL_CHUNK", "toolCallId": call, "toolCallName": tool, "delta": delta})
                            }
                            _ => json!({"type": "TOOL_CALL_CHUNK", "delta": delta}),
                        };
                        vec![deltas.map(chunk).collect()]
                    }
                };
                if let Some((result, in_snapshot_only)) = result
                    && !(*in_snapshot_only && self.turns[turn].snapshot)
                {
                    blocks.push(vec![json!({"type": "TOOL_CALL_RESULT", "messageId": format!("r-{message}"), "toolCallId": call, "content": content(*result)})]);
                }
                blocks
            }
        }
    }

    /// Without a snapshot, snapshot-only items are streamed.
    fn effective_style(&self, turn: usize, style: &EventStyle) -> EventStyle {
        match style {
            EventStyle::Snapshot if !self.turns[turn].snapshot => EventStyle::Events(Vec::new()),
            style => style.clone(),
        }
    }

    /// Events of a turn inside its run.
    fn events(&self, turn: usize) -> Vec<Value> {
        let items = 0..self.turns[turn].items.len();
        let mut waiting: Vec<std::vec::IntoIter<Block>> =
            items.map(|place| self.item_blocks(turn, place).into_iter()).collect();
        let mut blocks: Vec<Block> = Vec::new();
        let mut order = self.turns[turn].order.iter();
        loop {
            waiting.retain(|blocks| blocks.len() > 0);
            if waiting.is_empty() {
                break;
            }
            // After the last choice the items end in order.
            let next = order.next().map_or(0, |index| index.index(waiting.len()));
            blocks.extend(waiting[next].next());
        }
        for (place, noise) in &self.turns[turn].noise {
            blocks.insert(place.index(blocks.len() + 1), noise.events());
        }
        blocks.concat()
    }

    /// Messages of one turn as stored by the server; `taken` distinguishes snapshots.
    fn stored_messages(&self, turn: usize, taken: usize) -> Vec<Value> {
        let mut kept = Vec::new();
        let of_message =
            |id: String| if self.foreign_messages { format!("kept-{taken}-{turn}-{id}") } else { id };
        let of_call = |id: String| if self.foreign_calls { format!("kept-{turn}-{id}") } else { id };
        for (place, item) in self.turns[turn].items.iter().enumerate() {
            let (call, message) =
                (of_call(self.call_id(turn, place)), of_message(self.message_id(turn, place)));
            match item {
                TurnItem::Text { .. } => {
                    kept.push(json!({"id": message, "role": "assistant", "content": ConversationPlan::text(turn, place)}))
                }
                TurnItem::Call { tool, number, result, .. } => {
                    let arguments = self.arguments(turn, place, *number).to_string();
                    let function = json!({"name": tool, "arguments": arguments});
                    kept.push(json!({"id": message, "role": "assistant", "content": "", "toolCalls": [{"id": call, "type": "function", "function": function}]}));
                    if let Some((result, _)) = result {
                        kept.push(json!({"id": format!("r-{message}"), "role": "tool", "toolCallId": call, "content": content(*result)}));
                    }
                }
            }
        }
        kept
    }

    /// Snapshot content up to a turn.
    fn snapshot(&self, turn: usize, users: &[Value]) -> Vec<Value> {
        let mut all = Vec::new();
        for (number, user) in users.iter().enumerate().take(turn + 1) {
            let mut user = user.clone();
            if self.foreign_messages {
                user["id"] = json!(format!("user-{turn}-{number}"));
            }
            all.push(user);
            all.extend(self.stored_messages(number, turn));
        }
        all
    }

    fn calls(&self) -> Vec<String> {
        let mut calls = Vec::new();
        for (turn, of_turn) in self.turns.iter().enumerate() {
            for (place, item) in of_turn.items.iter().enumerate() {
                if let TurnItem::Call { tool, number, result, .. } = item {
                    let result = result.map_or("nothing".to_string(), |(result, _)| content(result));
                    calls.push(format!(
                        "{} {tool} {} → {result}",
                        turn + 1,
                        self.arguments(turn, place, *number)
                    ));
                }
            }
        }
        calls
    }

    fn texts(&self) -> Vec<String> {
        let mut texts = Vec::new();
        for (turn, of_turn) in self.turns.iter().enumerate() {
            let said =
                of_turn.items.iter().enumerate().filter(|(_, item)| matches!(item, TurnItem::Text { .. }));
            texts.extend(
                said.map(|(place, _)| format!("{} {}", turn + 1, ConversationPlan::text(turn, place))),
            );
        }
        texts
    }

    /// Returns true if everything is streamed sequentially, so that the order can be compared.
    fn is_sequential(&self) -> bool {
        let streamed = |item: &TurnItem| {
            !matches!(
                item,
                TurnItem::Text { style: EventStyle::Snapshot }
                    | TurnItem::Call { style: EventStyle::Snapshot, .. }
            )
        };
        self.turns
            .iter()
            .all(|turn| turn.order.is_empty() && (!turn.snapshot || turn.items.iter().all(streamed)))
    }
}

impl UnrelatedEvent {
    fn events(self) -> Vec<Value> {
        match self {
            UnrelatedEvent::Raw => vec![
                json!({"type": "RAW", "event": {"type": "TOOL_CALL_START", "toolCallId": "raw", "toolCallName": "raw"}}),
            ],
            UnrelatedEvent::Unknown => {
                vec![json!({"type": "SOMETHING_NEW", "toolCallId": "unknown", "toolCallName": "unknown"})]
            }
            UnrelatedEvent::Custom => {
                vec![json!({"type": "CUSTOM", "name": "progress", "value": {"toolCallId": "custom"}})]
            }
            UnrelatedEvent::State => vec![
                json!({"type": "STATE_SNAPSHOT", "snapshot": {"messages": [{"id": "x", "role": "assistant", "content": "not said"}]}}),
            ],
            UnrelatedEvent::Step => vec![
                json!({"type": "STEP_STARTED", "stepName": "s"}),
                json!({"type": "STEP_FINISHED", "stepName": "s"}),
            ],
            UnrelatedEvent::Activity => vec![
                json!({"type": "ACTIVITY_SNAPSHOT", "messageId": "activity", "activityType": "PLAN", "content": {}}),
            ],
        }
    }
}

/// A tool result: text, JSON, or JSON-like text.
fn content(result: u8) -> String {
    match result % 4 {
        0 => format!("plain {result}"),
        1 => format!(r#"{{"ok":true,"n":{result}}}"#),
        2 => format!("0{result}"),
        _ => format!(r#"["{result}",null]"#),
    }
}

/// Splits a text between characters; some pieces are empty.
fn pieces(text: &str, cuts: &[Index]) -> Vec<String> {
    let mut places: Vec<usize> =
        cuts.iter().map(|cut| text.floor_char_boundary(cut.index(text.len() + 1))).collect();
    places.extend([0, text.len()]);
    places.sort_unstable();
    places.windows(2).map(|pair| text[pair[0]..pair[1]].to_string()).collect()
}

fn style() -> impl Strategy<Value = EventStyle> {
    let cuts = || proptest::collection::vec(any::<Index>(), 0..5);
    prop_oneof![4 => cuts().prop_map(EventStyle::Events), 3 => cuts().prop_map(EventStyle::Chunks), 2 => Just(EventStyle::Snapshot)]
}

fn item() -> impl Strategy<Value = TurnItem> {
    let tool = prop_oneof![Just("search"), Just("pay"), Just("delete_order")];
    let result = proptest::option::weighted(0.8, (0..8_u8, proptest::bool::weighted(0.3)));
    let call = (tool, 0..3_u8, result, style()).prop_map(|(tool, number, result, style)| TurnItem::Call {
        tool,
        number,
        result,
        style,
    });
    prop_oneof![2 => call, 1 => style().prop_map(|style| TurnItem::Text { style })]
}

fn turn() -> impl Strategy<Value = PlannedTurn> {
    let noise = prop_oneof![
        Just(UnrelatedEvent::Raw),
        Just(UnrelatedEvent::Unknown),
        Just(UnrelatedEvent::Custom),
        Just(UnrelatedEvent::State),
        Just(UnrelatedEvent::Step),
        Just(UnrelatedEvent::Activity)
    ];
    let order = prop_oneof![Just(Vec::new()), proptest::collection::vec(any::<Index>(), 0..20)];
    let noise = proptest::collection::vec((any::<Index>(), noise), 0..4);
    (proptest::collection::vec(item(), 0..5), any::<bool>(), order, noise)
        .prop_map(|(items, snapshot, order, noise)| PlannedTurn { items, snapshot, order, noise })
}

fn plan() -> impl Strategy<Value = ConversationPlan> {
    (proptest::collection::vec(turn(), 1..4), any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
        |(turns, numbered_by_turn, foreign_messages, foreign_calls)| ConversationPlan {
            turns,
            numbered_by_turn,
            foreign_messages,
            foreign_calls,
        },
    )
}

fn sorted(mut texts: Vec<String>) -> Vec<String> {
    texts.sort();
    texts
}

proptest! {
    #[test]
    fn equivalent_event_streams_record_the_same_trace(plan in plan()) {
        let told = run_plan(&plan);
        prop_assert_eq!(&told.0.verdict.failure, &None);
        prop_assert_eq!(sorted(told.calls()), sorted(plan.calls()));
        prop_assert_eq!(sorted(told.texts()), sorted(plan.texts()));
        if plan.is_sequential() {
            prop_assert_eq!(told.calls(), plan.calls());
            prop_assert_eq!(told.texts(), plan.texts());
        }
        let noted: Vec<String> = told.notes().into_iter().filter(|note| !note.contains("SOMETHING_NEW")).collect();
        prop_assert_eq!(noted, Vec::<String>::new());
    }
}

/// Runs the planned conversation. The user text is the same in every turn, which makes it hardest to locate a
/// turn in a snapshot.
fn run_plan(plan: &ConversationPlan) -> ConversationOutcome {
    let server = plan.clone();
    let users = Mutex::new(Vec::new());
    let agent = FakeAgent::start(move |request: &FakeRequest| {
        let turn = request.index;
        let mut users = users.lock().expect("no handler panicked");
        users.push(messages(request).pop().expect("the user said something"));
        let mut run =
            server.events(turn).into_iter().fold(FakeRun::for_request(request).started(), FakeRun::raw_event);
        if server.turns[turn].snapshot {
            run = run.messages_snapshot(server.snapshot(turn, &users));
        }
        run.finished()
    });
    plan.turns.iter().fold(TestConversation::new(&agent).strict(), |talk, _| talk.user_says("go on")).run()
}
