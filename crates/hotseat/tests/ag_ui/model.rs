//! Whatever way a server has of saying it, what it did is recorded once: conversations are made up, written down as
//! streams in random styles, held, and compared with what was made up.

use std::sync::Mutex;

use hotseat_testkit::agui::Run;
use hotseat_testkit::{FakeAgent, Request};
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};

use super::talk::{Talk, Told, messages};

/// A conversation, and how a server tells of it.
#[derive(Debug, Clone)]
struct Plan {
    turns: Vec<Turn>,
    /// Ids start over in each turn.
    numbered_by_turn: bool,
    /// What snapshots call messages, and calls.
    foreign_messages: bool,
    foreign_calls: bool,
}

#[derive(Debug, Clone)]
struct Turn {
    items: Vec<Item>,
    /// Whether it ends with a snapshot of everything so far.
    snapshot: bool,
    /// Which item goes on next, for as long as more than one can.
    order: Vec<Index>,
    /// What else comes, and in front of which event.
    noise: Vec<(Index, Noise)>,
}

/// Something the agent does.
#[derive(Debug, Clone)]
enum Item {
    Text { style: Style },
    Call { tool: &'static str, number: u8, result: Option<(u8, bool)>, style: Style },
}

/// How something is told.
#[derive(Debug, Clone)]
enum Style {
    /// A beginning, deltas, and an end.
    Events(Vec<Index>),
    /// Chunks.
    Chunks(Vec<Index>),
    /// Not at all, except by the snapshot.
    Snapshot,
}

#[derive(Debug, Clone, Copy)]
enum Noise {
    Raw,
    Unknown,
    Custom,
    State,
    Step,
    Activity,
}

/// What one event or several make, which nothing may come between.
type Block = Vec<Value>;

impl Plan {
    fn call_id(&self, turn: usize, item: usize) -> String {
        if self.numbered_by_turn { format!("call-{item}") } else { format!("call-{turn}-{item}") }
    }

    fn message_id(&self, turn: usize, item: usize) -> String {
        if self.numbered_by_turn { format!("message-{item}") } else { format!("message-{turn}-{item}") }
    }

    /// Arguments; calls of different items differ where nothing else could tell them apart.
    fn arguments(&self, turn: usize, item: usize, number: u8) -> Value {
        let apart = self.numbered_by_turn || self.foreign_calls;
        let mark = if apart { turn * 10 + item } else { 0 };
        json!({"n": number, "mark": mark, "text": "é \"你好\" 🌍\n"})
    }

    fn text(turn: usize, item: usize) -> String {
        format!("Text {item} of turn {turn}: \"你好\" 🌍.")
    }

    /// The blocks that tell of an item as it happens, and those that tell of its result.
    fn told(&self, turn: usize, place: usize) -> Vec<Block> {
        let (call, message) = (self.call_id(turn, place), self.message_id(turn, place));
        match &self.turns[turn].items[place] {
            Item::Text { style } => match self.as_told(turn, style) {
                Style::Snapshot => Vec::new(),
                Style::Events(cuts) => {
                    let deltas = pieces(&Plan::text(turn, place), &cuts);
                    let delta = |delta: String| {
                        vec![json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": message, "delta": delta})]
                    };
                    let start = vec![
                        json!({"type": "TEXT_MESSAGE_START", "messageId": message, "role": "assistant"}),
                    ];
                    let end = vec![json!({"type": "TEXT_MESSAGE_END", "messageId": message})];
                    [start].into_iter().chain(deltas.into_iter().map(delta)).chain([end]).collect()
                }
                Style::Chunks(cuts) => {
                    let deltas = pieces(&Plan::text(turn, place), &cuts).into_iter().enumerate();
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
            Item::Call { tool, number, result, style } => {
                let arguments = self.arguments(turn, place, *number).to_string();
                let mut blocks: Vec<Block> = match self.as_told(turn, style) {
                    Style::Snapshot => return Vec::new(),
                    Style::Events(cuts) => {
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
                    Style::Chunks(cuts) => {
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

    /// Without a snapshot nothing can be told by it alone.
    fn as_told(&self, turn: usize, style: &Style) -> Style {
        match style {
            Style::Snapshot if !self.turns[turn].snapshot => Style::Events(Vec::new()),
            style => style.clone(),
        }
    }

    /// The events of a turn between the first and the last of its run.
    fn events(&self, turn: usize) -> Vec<Value> {
        let items = 0..self.turns[turn].items.len();
        let mut waiting: Vec<std::vec::IntoIter<Block>> =
            items.map(|place| self.told(turn, place).into_iter()).collect();
        let mut blocks: Vec<Block> = Vec::new();
        let mut order = self.turns[turn].order.iter();
        loop {
            waiting.retain(|blocks| blocks.len() > 0);
            if waiting.is_empty() {
                break;
            }
            // When no more choices were made up, the items end one after the other.
            let next = order.next().map_or(0, |index| index.index(waiting.len()));
            blocks.extend(waiting[next].next());
        }
        for (place, noise) in &self.turns[turn].noise {
            blocks.insert(place.index(blocks.len() + 1), noise.events());
        }
        blocks.concat()
    }

    /// The messages of one turn as its server keeps them; `taken` tells apart the snapshots they stand in.
    fn kept(&self, turn: usize, taken: usize) -> Vec<Value> {
        let mut kept = Vec::new();
        let of_message =
            |id: String| if self.foreign_messages { format!("kept-{taken}-{turn}-{id}") } else { id };
        let of_call = |id: String| if self.foreign_calls { format!("kept-{turn}-{id}") } else { id };
        for (place, item) in self.turns[turn].items.iter().enumerate() {
            let (call, message) =
                (of_call(self.call_id(turn, place)), of_message(self.message_id(turn, place)));
            match item {
                Item::Text { .. } => {
                    kept.push(json!({"id": message, "role": "assistant", "content": Plan::text(turn, place)}))
                }
                Item::Call { tool, number, result, .. } => {
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

    /// Everything up to a turn, as its snapshot shows it.
    fn snapshot(&self, turn: usize, users: &[Value]) -> Vec<Value> {
        let mut all = Vec::new();
        for (number, user) in users.iter().enumerate().take(turn + 1) {
            let mut user = user.clone();
            if self.foreign_messages {
                user["id"] = json!(format!("user-{turn}-{number}"));
            }
            all.push(user);
            all.extend(self.kept(number, turn));
        }
        all
    }

    fn calls(&self) -> Vec<String> {
        let mut calls = Vec::new();
        for (turn, of_turn) in self.turns.iter().enumerate() {
            for (place, item) in of_turn.items.iter().enumerate() {
                if let Item::Call { tool, number, result, .. } = item {
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
            let said = of_turn.items.iter().enumerate().filter(|(_, item)| matches!(item, Item::Text { .. }));
            texts.extend(said.map(|(place, _)| format!("{} {}", turn + 1, Plan::text(turn, place))));
        }
        texts
    }

    /// Whether everything is told as it happens and one after the other, so that the order can be compared too.
    fn in_order(&self) -> bool {
        let streamed = |item: &Item| {
            !matches!(item, Item::Text { style: Style::Snapshot } | Item::Call { style: Style::Snapshot, .. })
        };
        self.turns
            .iter()
            .all(|turn| turn.order.is_empty() && (!turn.snapshot || turn.items.iter().all(streamed)))
    }
}

impl Noise {
    fn events(self) -> Vec<Value> {
        match self {
            Noise::Raw => vec![
                json!({"type": "RAW", "event": {"type": "TOOL_CALL_START", "toolCallId": "raw", "toolCallName": "raw"}}),
            ],
            Noise::Unknown => {
                vec![json!({"type": "SOMETHING_NEW", "toolCallId": "unknown", "toolCallName": "unknown"})]
            }
            Noise::Custom => {
                vec![json!({"type": "CUSTOM", "name": "progress", "value": {"toolCallId": "custom"}})]
            }
            Noise::State => vec![
                json!({"type": "STATE_SNAPSHOT", "snapshot": {"messages": [{"id": "x", "role": "assistant", "content": "not said"}]}}),
            ],
            Noise::Step => vec![
                json!({"type": "STEP_STARTED", "stepName": "s"}),
                json!({"type": "STEP_FINISHED", "stepName": "s"}),
            ],
            Noise::Activity => vec![
                json!({"type": "ACTIVITY_SNAPSHOT", "messageId": "activity", "activityType": "PLAN", "content": {}}),
            ],
        }
    }
}

/// What a tool returned: text, JSON, and what only looks like it.
fn content(result: u8) -> String {
    match result % 4 {
        0 => format!("plain {result}"),
        1 => format!(r#"{{"ok":true,"n":{result}}}"#),
        2 => format!("0{result}"),
        _ => format!(r#"["{result}",null]"#),
    }
}

/// A text in pieces, cut between characters; some pieces are empty.
fn pieces(text: &str, cuts: &[Index]) -> Vec<String> {
    let mut places: Vec<usize> =
        cuts.iter().map(|cut| text.floor_char_boundary(cut.index(text.len() + 1))).collect();
    places.extend([0, text.len()]);
    places.sort_unstable();
    places.windows(2).map(|pair| text[pair[0]..pair[1]].to_string()).collect()
}

fn style() -> impl Strategy<Value = Style> {
    let cuts = || proptest::collection::vec(any::<Index>(), 0..5);
    prop_oneof![4 => cuts().prop_map(Style::Events), 3 => cuts().prop_map(Style::Chunks), 2 => Just(Style::Snapshot)]
}

fn item() -> impl Strategy<Value = Item> {
    let tool = prop_oneof![Just("search"), Just("pay"), Just("delete_order")];
    let result = proptest::option::weighted(0.8, (0..8_u8, proptest::bool::weighted(0.3)));
    let call = (tool, 0..3_u8, result, style()).prop_map(|(tool, number, result, style)| Item::Call {
        tool,
        number,
        result,
        style,
    });
    prop_oneof![2 => call, 1 => style().prop_map(|style| Item::Text { style })]
}

fn turn() -> impl Strategy<Value = Turn> {
    let noise = prop_oneof![
        Just(Noise::Raw),
        Just(Noise::Unknown),
        Just(Noise::Custom),
        Just(Noise::State),
        Just(Noise::Step),
        Just(Noise::Activity)
    ];
    let order = prop_oneof![Just(Vec::new()), proptest::collection::vec(any::<Index>(), 0..20)];
    let noise = proptest::collection::vec((any::<Index>(), noise), 0..4);
    (proptest::collection::vec(item(), 0..5), any::<bool>(), order, noise)
        .prop_map(|(items, snapshot, order, noise)| Turn { items, snapshot, order, noise })
}

fn plan() -> impl Strategy<Value = Plan> {
    (proptest::collection::vec(turn(), 1..4), any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
        |(turns, numbered_by_turn, foreign_messages, foreign_calls)| Plan {
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
    fn what_an_agent_did_is_recorded_once_however_it_is_told(plan in plan()) {
        let told = held(&plan);
        prop_assert_eq!(&told.0.verdict.failure, &None);
        prop_assert_eq!(sorted(told.calls()), sorted(plan.calls()));
        prop_assert_eq!(sorted(told.texts()), sorted(plan.texts()));
        if plan.in_order() {
            prop_assert_eq!(told.calls(), plan.calls());
            prop_assert_eq!(told.texts(), plan.texts());
        }
        let noted: Vec<String> = told.notes().into_iter().filter(|note| !note.contains("SOMETHING_NEW")).collect();
        prop_assert_eq!(noted, Vec::<String>::new());
    }
}

/// The conversation with a server that behaves as planned. The user says the same in every turn, which is the
/// hardest for whoever has to find a turn in a snapshot.
fn held(plan: &Plan) -> Told {
    let server = plan.clone();
    let users = Mutex::new(Vec::new());
    let agent = FakeAgent::start(move |request: &Request| {
        let turn = request.index;
        let mut users = users.lock().expect("no handler panicked");
        users.push(messages(request).pop().expect("the user said something"));
        let mut run = server.events(turn).into_iter().fold(Run::of(request).started(), Run::raw_event);
        if server.turns[turn].snapshot {
            run = run.messages_snapshot(server.snapshot(turn, &users));
        }
        run.finished()
    });
    plan.turns.iter().fold(Talk::with(&agent).strictly(), |talk, _| talk.says("go on")).held()
}
