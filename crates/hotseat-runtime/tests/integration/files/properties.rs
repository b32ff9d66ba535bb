//! Agent files round-trip.

use std::collections::BTreeMap;

use hotseat_runtime::definition::{
    ApprovalPolicy, BackoffGrowth, BranchJoin, BranchMerge, BranchPerItem, ContextAction, ContextPolicy,
    DefinitionRef, Definitions, FailAction, JoinRule, MemberMerge, MemoryAction, MockAction, NodeTransition,
    NodeWork, OnJoinTimeout, Persona, StepAction, StepBranch, StepCondition, StepDefinition,
    StepFailurePolicy, TaskDefinition, TaskRetry, ToolDefinition, ToolRetry, ToolTarget, WorkflowDefinition,
    WorkflowNode, assemble, node, persona, task, tool, transition, workflow,
};
use hotseat_runtime::expression::Expression;
use hotseat_runtime::failure::{ErrorCode, InfrastructureKind, WorkFailure};
use hotseat_runtime::files::{self, LoadOptions};
use hotseat_trace::InvocationMode;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Choices of a property test, which shrink: after the last one every choice is the first option.
struct Choices {
    bytes: std::vec::IntoIter<u8>,
    names: usize,
    /// Ids of agents that can be referenced.
    agents: Vec<String>,
}

impl Choices {
    fn next_below(&mut self, count: usize) -> usize {
        usize::from(self.bytes.next().unwrap_or(0)) % count
    }

    fn flip(&mut self) -> bool {
        self.next_below(2) == 1
    }

    fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.next_below(of.len())].clone()
    }

    fn maybe<T>(&mut self, make: impl FnOnce(&mut Choices) -> T) -> Option<T> {
        self.flip().then(|| make(self))
    }

    fn some<T>(&mut self, mut make: impl FnMut(&mut Choices) -> T) -> Vec<T> {
        (0..self.next_below(4)).map(|_| make(self)).collect()
    }

    /// A unique name.
    fn name(&mut self, prefix: &str) -> String {
        self.names += 1;
        let odd = self.pick(&["", " ", ": ", "-Ä", " #", "'\"\\", "\n", "{}"]);
        format!("{prefix}{odd}{}", self.names)
    }

    fn text(&mut self) -> String {
        self.pick(&["a", "yes", "12", "null", "~", "a: b", "${ENV.X}", "\u{1F600}\n x\t", " spaced ", "- [#"])
            .to_owned()
    }

    fn value(&mut self) -> Value {
        let text = self.text();
        let values = [
            json!(null),
            json!(true),
            json!(-3),
            json!(1.5),
            json!(text),
            json!([1, [text], {}]),
            json!({"a": {"b": text}, "": []}),
        ];
        self.pick(&values)
    }

    fn schema(&mut self) -> Value {
        self.pick(&[
            json!({}),
            json!({"type": "object", "properties": {"a": {"type": ["string", "null"], "minLength": 1}}, "required": ["a"]}),
            json!({"type": "array", "items": {"enum": [1, "x", null]}, "uniqueItems": true, "maxItems": 3}),
            json!({"additionalProperties": {"type": "number", "minimum": 0.5, "multipleOf": 0.5}}),
        ])
    }

    fn expression(&mut self) -> Expression {
        let text = self.pick(&[
            "input",
            "input.a[-1].b * 2",
            "state.n > 3 && !output.done",
            "{a: sum([1, 2]), ...input, 'b c': \"x\"}",
            "output['a'] ? 'yes' : null",
            " [ ...input.list , 1.5 ] ",
            "true",
            "42",
        ]);
        Expression::parse(text).unwrap()
    }

    fn members(&mut self, prefix: &str) -> Vec<(String, Expression)> {
        self.some(|choices| (format!("{prefix}{}", choices.name("m").replace('.', "")), choices.expression()))
    }

    fn failure(&mut self) -> WorkFailure {
        let message = self.text();
        let kinds = [
            InfrastructureKind::Network,
            InfrastructureKind::Timeout,
            InfrastructureKind::RateLimit,
            InfrastructureKind::Server,
        ];
        let codes = [
            ErrorCode::ExecutionFailed,
            ErrorCode::Timeout,
            ErrorCode::NotFound,
            ErrorCode::PermissionDenied,
            ErrorCode::InvalidInput,
            ErrorCode::AgentDeclined,
            ErrorCode::InternalError,
        ];
        if self.flip() {
            WorkFailure::infrastructure(self.pick(&kinds), message)
        } else {
            WorkFailure::business(self.pick(&codes), message)
        }
    }

    fn mock(&mut self) -> MockAction {
        let mut mock = MockAction::default();
        match self.next_below(4) {
            0 => mock.returns = Some(Expression::constant(self.value())),
            1 => {
                let text = self.pick(&["input.a", "{a: input.b + 'x'}", "length(input.list)"]);
                mock.returns = Some(Expression::parse(text).unwrap());
            }
            2 => mock.schema = Some(self.schema()),
            _ => mock.failure = Some(self.failure()),
        }
        if mock.failure.is_none() && self.flip() {
            mock.failure = Some(self.failure());
            mock.failing_attempts = Some(self.pick(&[1, 3]));
        }
        mock.delay_ms = self.pick(&[(0, 0), (5, 5), (0, 7), (10, 2000)]);
        mock.seed = self.pick(&[0, 7]);
        mock
    }

    fn action(&mut self) -> StepAction {
        match self.next_below(8) {
            7 => StepAction::Agent(DefinitionRef::Id(self.agent())),
            0 => StepAction::Mock(Box::new(self.mock())),
            1 => StepAction::Echo,
            2 => StepAction::Fail(FailAction { failure: self.failure() }),
            3 => StepAction::Context(ContextAction { merge: None }),
            4 => {
                let merge =
                    MemberMerge { target: self.text(), sources: vec![self.text()], flatten: self.flip() };
                StepAction::Context(ContextAction { merge: Some(merge) })
            }
            5 => {
                let text = self.maybe(Choices::text);
                StepAction::Assemble(text.map_or_else(assemble, |text| assemble().append_system(&text)))
            }
            _ => StepAction::Memory(self.pick(&[
                MemoryAction::Write,
                MemoryAction::Read,
                MemoryAction::Search,
                MemoryAction::List,
                MemoryAction::Delete,
            ])),
        }
    }

    fn agent(&mut self) -> std::sync::Arc<str> {
        let agents = self.agents.clone();
        self.pick(&agents).as_str().into()
    }

    fn step(&mut self) -> StepDefinition {
        let branches = [StepBranch::Continue, StepBranch::Skip, StepBranch::Succeed, StepBranch::Fail];
        StepDefinition {
            name: self.name("step").into(),
            action: self.action(),
            input_mapping: match self.flip() {
                true => BTreeMap::from([("*".to_owned(), self.expression())]),
                false => self.members("").into_iter().collect(),
            },
            output_mapping: match self.flip() {
                true => vec![("output".to_owned(), self.expression())],
                false => self.members("state."),
            },
            on_failure: self.pick(&[
                StepFailurePolicy::Abort,
                StepFailurePolicy::Retry,
                StepFailurePolicy::Continue,
            ]),
            condition: self.maybe(|choices| StepCondition {
                condition: choices.expression(),
                then: choices.pick(&branches),
                otherwise: choices.pick(&branches),
            }),
        }
    }

    fn task(&mut self) -> TaskDefinition {
        let mut made = task(&self.name("Task"));
        made.input_schema = self.maybe(Choices::schema);
        made.output_schema = self.maybe(Choices::schema);
        made.steps = self.some(Choices::step);
        made.timeout_ms = self.maybe(|choices| choices.pick(&[1, 60_000]));
        made.retry = TaskRetry {
            max_attempts: self.pick(&[2, 5]),
            backoff: self.pick(&[BackoffGrowth::None, BackoffGrowth::Linear, BackoffGrowth::Exponential]),
            initial_delay_ms: self.pick(&[0, 10]),
            max_delay_ms: self.pick(&[u64::MAX, 1000]),
        };
        made
    }

    fn workflow(&mut self, depth: usize) -> WorkflowDefinition {
        let mut made = workflow(&self.name("Flow"));
        made.input_schema = self.maybe(Choices::schema);
        made.output_schema = self.maybe(Choices::schema);
        made.output_mapping = match self.next_below(3) {
            0 => Vec::new(),
            1 => vec![(String::new(), self.expression())],
            _ => self.members(""),
        };
        for _ in 0..1 + self.next_below(3) {
            let name = self.name("node");
            let mut node = match self.next_below(3) {
                1 => WorkflowNode::agent_id(&name, &self.agent()),
                2 if depth > 0 => WorkflowNode::subworkflow(&name, &self.workflow(depth - 1)),
                _ => node(&name, &self.task()),
            };
            node.input_mapping = match self.flip() {
                true => vec![("*".to_owned(), self.expression())],
                false => self.members(""),
            };
            node.output_mapping = self.members("output.");
            made.nodes.push(node);
        }
        if self.flip() {
            made.initial = Some(made.nodes[0].name.to_string());
        }
        let names: Vec<String> = made.nodes.iter().map(|node| node.name.to_string()).collect();
        if names.len() > 1 && self.flip() {
            for pair in names.windows(2) {
                let way = self.transition(&pair[0], &pair[1], &made.transitions);
                made.transitions.push(way);
            }
            if self.flip() {
                let way = self.transition(&names[1], &names[0], &made.transitions);
                made.transitions.push(way);
            }
        }
        made
    }

    fn transition(&mut self, from: &str, to: &str, before: &[NodeTransition]) -> NodeTransition {
        let mut way = transition(from, to);
        if self.flip() {
            way.name = self.name("way");
            way.max_iterations = Some(3);
        }
        way.condition = self.maybe(Choices::expression);
        way.priority = self.pick(&[0, 2]);
        match self.next_below(3) {
            0 => {}
            1 => way.spawn_count = 3,
            _ => {
                let item = self.pick(&["item", "source"]).to_owned();
                way.for_each = Some(BranchPerItem { collection: self.expression(), item });
                way.sibling_group = Some(self.name("group"));
            }
        }
        let group = before.iter().find_map(|way| way.sibling_group.clone());
        way.fan_in = group.filter(|_| self.flip()).map(|sibling_group| BranchJoin {
            sibling_group,
            join: self.pick(&[JoinRule::All, JoinRule::Any, JoinRule::Count(2)]),
            merge: self.maybe(|choices| {
                let path = "output.all".to_owned();
                choices.pick(&[
                    BranchMerge::Append(path.clone()),
                    BranchMerge::Collect(path.clone()),
                    BranchMerge::MergeObject(path.clone()),
                    BranchMerge::KeyedByBranch(path.clone()),
                    BranchMerge::LastWins(path),
                ])
            }),
            timeout: self.pick(&[None, Some((5, OnJoinTimeout::Fail)), Some((5, OnJoinTimeout::Proceed))]),
        });
        way
    }

    fn tool(&mut self) -> ToolDefinition {
        let mut made = tool(&self.name("tool"));
        made.description = self.text();
        made.input_schema = self.schema();
        made.is_async = self.flip();
        made.target = Some(match self.next_below(4) {
            0 => ToolTarget::Client,
            1 => ToolTarget::Task(DefinitionRef::Embedded(self.task().into())),
            2 => ToolTarget::Workflow(DefinitionRef::Embedded(self.workflow(1).into())),
            _ => ToolTarget::Agent(DefinitionRef::Id(self.agent())),
        });
        made.input_mapping = self.maybe(|choices| BTreeMap::from([(choices.text(), choices.text())]));
        let scalar = |text: &str| Expression::parse(text).unwrap();
        made.reads =
            self.some(|choices| (choices.name("r"), scalar(choices.pick(&["input.a", "state.b + 1"]))));
        if matches!(made.target, Some(ToolTarget::Agent(_))) && self.flip() {
            made.mode = InvocationMode::LoopIn;
            made.is_async = false;
        } else {
            made.writes = self.some(|choices| (choices.name("w"), scalar(choices.pick(&["result.a", "3"]))));
            made.retry = ToolRetry {
                max_attempts: self.pick(&[1, 4]),
                backoff_ms: self.pick(&[1000, 0]),
                timeout_ms: self.pick(&[None, Some(60_000), Some(5)]),
            };
        }
        made.approval = self.maybe(|choices| ApprovalPolicy { message: choices.text() });
        made
    }

    fn persona(&mut self, name: &str) -> Persona {
        let mut made = persona(name);
        made.system_prompt = self.text();
        made.profile.id = "model".into();
        made.profile.temperature = self.maybe(|choices| choices.pick(&[0.0, 0.75]));
        made.profile.max_tokens = self.maybe(|_| 100);
        made.tools = self.some(Choices::tool);
        made.context_assembly = self.maybe(|choices| DefinitionRef::Embedded(choices.workflow(0).into()));
        made.memory_extraction = self.maybe(|choices| DefinitionRef::Embedded(choices.workflow(0).into()));
        made.context_policy = self.pick(&[ContextPolicy::PerModelCall, ContextPolicy::PerTurn]);
        made.recent_turns_limit = self.pick(&[20, 0, 3]);
        made.max_moves_per_turn = self.maybe(|_| 5);
        made.may_decline = self.flip();
        made
    }
}

/// An object with the members that are present.
fn object<const N: usize>(members: [(&str, Option<Value>); N]) -> Value {
    Value::Object(members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect())
}

fn text_of(expression: &Expression) -> Value {
    json!(expression.text())
}

fn members_of<'e>(members: impl IntoIterator<Item = (&'e String, &'e Expression)>) -> Value {
    Value::Object(
        members.into_iter().map(|(name, value)| (name.clone(), text_of(value))).collect::<Map<_, _>>(),
    )
}

fn written_members(members: &[(String, Expression)]) -> Option<Value> {
    (!members.is_empty()).then(|| members_of(members.iter().map(|(name, value)| (name, value))))
}

/// An agent reference by path.
fn written_agent(id: &str) -> Value {
    json!(format!("../{id}/agent.yaml"))
}

fn written_failure(failure: &WorkFailure) -> Value {
    match failure {
        WorkFailure::Infrastructure { kind, message } => json!({"message": message, "kind": kind}),
        WorkFailure::Business { code, message } => json!({"message": message, "code": code}),
    }
}

fn written_step(step: &StepDefinition) -> Value {
    let (key, action) = match &step.action {
        StepAction::Mock(mock) => {
            let constant = mock.returns.as_ref().and_then(|returns| {
                let value: Value = serde_json::from_str(returns.text()).ok()?;
                (Expression::constant(value.clone()) == *returns).then_some(value)
            });
            let computes = mock.returns.as_ref().filter(|_| constant.is_none()).map(text_of);
            let delay = match mock.delay_ms {
                (from, to) if from == to => json!(from),
                (from, to) => json!([from, to]),
            };
            let mock = object([
                ("returns", constant),
                ("computes", computes),
                ("schema", mock.schema.clone()),
                ("fails", mock.failure.as_ref().map(written_failure)),
                ("first_attempts", mock.failing_attempts.map(|count| json!(count))),
                ("delay_ms", Some(delay)),
                ("seed", Some(json!(mock.seed))),
            ]);
            ("mock", mock)
        }
        StepAction::Echo => ("echo", json!({})),
        StepAction::Fail(fail) => ("fail", written_failure(&fail.failure)),
        StepAction::Context(context) => {
            let merge = context.merge.as_ref().map(
                |merge| json!({"target": merge.target, "sources": merge.sources, "flatten": merge.flatten}),
            );
            ("context", object([("merge", merge)]))
        }
        StepAction::Assemble(assemble) => {
            ("assemble", object([("append_system", assemble.append_system.as_ref().map(|text| json!(text)))]))
        }
        StepAction::Memory(memory) => ("memory", json!(format!("{memory:?}").to_lowercase())),
        StepAction::Agent(DefinitionRef::Id(id)) => ("agent", written_agent(id)),
        StepAction::Agent(DefinitionRef::Embedded(_)) | StepAction::Custom(_) => {
            unreachable!("neither is made")
        }
    };
    let branch = |branch: StepBranch| json!(format!("{branch:?}").to_lowercase());
    let condition = step.condition.as_ref().map(|condition| {
        json!({
            "condition": text_of(&condition.condition),
            "then": branch(condition.then),
            "else": branch(condition.otherwise),
        })
    });
    object([
        ("name", Some(json!(step.name))),
        (key, Some(action)),
        ("input", Some(step.input_mapping.get("*").map_or_else(|| members_of(&step.input_mapping), text_of))),
        ("output", Some(members_of(step.output_mapping.iter().map(|(path, value)| (path, value))))),
        ("on_failure", Some(json!(format!("{:?}", step.on_failure).to_lowercase()))),
        ("when", condition),
    ])
}

fn written_task(task: &TaskDefinition) -> Value {
    let retry = object([
        ("max_attempts", Some(json!(task.retry.max_attempts))),
        ("backoff", Some(json!(format!("{:?}", task.retry.backoff).to_lowercase()))),
        ("delay_ms", Some(json!(task.retry.initial_delay_ms))),
        ("max_delay_ms", (task.retry.max_delay_ms != u64::MAX).then(|| json!(task.retry.max_delay_ms))),
    ]);
    object([
        ("name", Some(json!(task.name))),
        ("input", task.input_schema.clone()),
        ("output", task.output_schema.clone()),
        ("steps", Some(task.steps.iter().map(written_step).collect())),
        ("retry", Some(retry)),
        ("timeout_ms", task.timeout_ms.map(|limit| json!(limit))),
    ])
}

fn written_workflow(workflow: &WorkflowDefinition) -> Value {
    let node = |node: &WorkflowNode| {
        let (key, work) = match &node.work {
            NodeWork::Task(task) => ("task", written_task(task)),
            NodeWork::Workflow(DefinitionRef::Embedded(workflow)) => ("workflow", written_workflow(workflow)),
            NodeWork::Agent(DefinitionRef::Id(id)) => ("agent", written_agent(id)),
            NodeWork::Workflow(DefinitionRef::Id(_)) | NodeWork::Agent(DefinitionRef::Embedded(_)) => {
                unreachable!("neither is made")
            }
        };
        let input = match node.input_mapping.as_slice() {
            [(member, whole)] if member == "*" => Some(text_of(whole)),
            members => written_members(members),
        };
        object([
            ("name", Some(json!(node.name))),
            (key, Some(work)),
            ("input", input),
            ("output", written_members(&node.output_mapping)),
        ])
    };
    let returns = match workflow.output_mapping.as_slice() {
        [(path, whole)] if path.is_empty() => Some(text_of(whole)),
        members => written_members(members),
    };
    object([
        ("name", Some(json!(workflow.name))),
        ("input", workflow.input_schema.clone()),
        ("output", workflow.output_schema.clone()),
        ("returns", returns),
        ("initial", workflow.initial.as_ref().map(|name| json!(name))),
        ("nodes", Some(workflow.nodes.iter().map(node).collect())),
        ("transitions", Some(workflow.transitions.iter().map(written_transition).collect())),
    ])
}

fn written_transition(way: &NodeTransition) -> Value {
    let fan_in = way.fan_in.as_ref().map(|fan_in| {
        let merge = fan_in.merge.as_ref().map(|merge| match merge {
            BranchMerge::Append(path) => json!({"append": path}),
            BranchMerge::Collect(path) => json!({"collect": path}),
            BranchMerge::MergeObject(path) => json!({"merge_object": path}),
            BranchMerge::KeyedByBranch(path) => json!({"keyed_by_branch": path}),
            BranchMerge::LastWins(path) => json!({"last_wins": path}),
        });
        let join = match fan_in.join {
            JoinRule::All => json!("all"),
            JoinRule::Any => json!("any"),
            JoinRule::Count(count) => json!(count),
        };
        object([
            ("group", Some(json!(fan_in.sibling_group))),
            ("join", Some(join)),
            ("merge", merge),
            ("timeout_ms", fan_in.timeout.map(|(limit, _)| json!(limit))),
            ("on_timeout", fan_in.timeout.map(|(_, then)| json!(format!("{then:?}").to_lowercase()))),
        ])
    });
    let each = way.for_each.as_ref();
    let each = each.map(|each| json!({"collection": text_of(&each.collection), "item": each.item}));
    object([
        ("from", Some(json!(way.from))),
        ("to", Some(json!(way.to))),
        ("name", Some(json!(way.name))),
        ("when", way.condition.as_ref().map(text_of)),
        ("priority", Some(json!(way.priority))),
        ("spawn", (way.spawn_count != 1).then(|| json!(way.spawn_count))),
        ("for_each", each),
        ("group", way.sibling_group.as_ref().map(|group| json!(group))),
        ("fan_in", fan_in),
        ("max_iterations", way.max_iterations.map(|most| json!(most))),
    ])
}

fn written_tool(tool: &ToolDefinition) -> Value {
    let (key, target) = match &tool.target {
        Some(ToolTarget::Client) => ("client", json!(true)),
        Some(ToolTarget::Task(DefinitionRef::Embedded(task))) => ("task", written_task(task)),
        Some(ToolTarget::Workflow(DefinitionRef::Embedded(workflow))) => {
            ("workflow", written_workflow(workflow))
        }
        Some(ToolTarget::Agent(DefinitionRef::Id(id))) => ("agent", written_agent(id)),
        other => unreachable!("{other:?} is not made"),
    };
    let joins = tool.mode == InvocationMode::LoopIn;
    let retry = json!({"max_attempts": tool.retry.max_attempts, "backoff_ms": tool.retry.backoff_ms});
    let limit = tool.retry.timeout_ms.map_or(json!(false), |limit| json!(limit));
    object([
        ("name", Some(json!(tool.name))),
        ("description", Some(json!(tool.description))),
        ("input", Some(tool.input_schema.clone())),
        (key, Some(target)),
        ("async", Some(json!(tool.is_async))),
        ("mode", joins.then(|| json!("loop_in"))),
        ("map", tool.input_mapping.as_ref().map(|mapping| json!(mapping))),
        ("reads", written_members(&tool.reads)),
        ("writes", written_members(&tool.writes)),
        ("approval", tool.approval.as_ref().map(|approval| json!(approval.message))),
        ("retry", (!joins).then_some(retry)),
        ("timeout_ms", (!joins).then_some(limit)),
    ])
}

fn written_persona(persona: &Persona) -> Value {
    let hook = |hook: &Option<DefinitionRef<WorkflowDefinition>>| match hook {
        Some(DefinitionRef::Embedded(workflow)) => Some(written_workflow(workflow)),
        Some(DefinitionRef::Id(_)) | None => None,
    };
    let policy = match persona.context_policy {
        ContextPolicy::PerModelCall => "per_model_call",
        ContextPolicy::PerTurn => "per_turn",
    };
    let limits = object([
        ("max_moves", persona.max_moves_per_turn.map(|most| json!(most))),
        ("recent_turns", Some(json!(persona.recent_turns_limit))),
    ]);
    object([
        ("name", Some(json!(persona.name))),
        ("system", Some(json!(persona.system_prompt))),
        ("connector", Some(json!("model"))),
        ("temperature", persona.profile.temperature.map(|number| json!(number))),
        ("max_tokens", persona.profile.max_tokens.map(|number| json!(number))),
        ("tools", Some(persona.tools.iter().map(written_tool).collect())),
        ("context", hook(&persona.context_assembly)),
        ("memory", hook(&persona.memory_extraction)),
        ("context_policy", Some(json!(policy))),
        ("may_decline", Some(json!(persona.may_decline))),
        ("limits", Some(limits)),
    ])
}

/// Three agents that may refer to each other.
fn personas(bytes: Vec<u8>) -> Vec<Persona> {
    let agents = ["one", "two", "three"].map(str::to_owned).to_vec();
    let mut choices = Choices { bytes: bytes.into_iter(), names: 0, agents };
    let mut made = vec![choices.persona("One"), choices.persona("Two"), choices.persona("THREE")];
    // Only referenced agents are loaded.
    for id in ["two", "three"] {
        made[0].tools.push(tool(&format!("ask {id}")).agent_id(id));
    }
    made
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn definitions_round_trip(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        let personas = personas(bytes);
        let folder = tempfile::tempdir().unwrap();
        for persona in &personas {
            let mut written = written_persona(persona);
            if persona.name == "One" {
                written["connectors"] = json!({"model": {"type": "scripted", "script": "script.yaml"}});
            }
            let home = folder.path().join(persona.name.to_lowercase());
            std::fs::create_dir(&home).unwrap();
            std::fs::write(home.join("agent.yaml"), serde_json::to_string_pretty(&written).unwrap()).unwrap();
        }
        std::fs::write(folder.path().join("one/script.yaml"), "rules: [{ reply: hi }]").unwrap();
        let read = match files::load(&folder.path().join("one"), &LoadOptions::default()) {
            Ok(read) => read,
            Err(mistakes) => return Err(TestCaseError::fail(mistakes.render(false, 120))),
        };
        prop_assert_eq!(&*read.definitions, &Definitions::from_personas(&personas).unwrap());
    }

    #[test]
    fn arbitrary_text_never_panics(text in "[a-z0-9:{}\\[\\]\"'|>&*!%#@,.\\-? \n\\\\]{0,60}", key in 0usize..8) {
        let key = ["tools", "context", "memory", "limits", "connectors", "system", "name", "tools: [{ name: a, task: { steps"][key];
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("agent.yaml"), format!("name: A\n{key}: {text}\n")).unwrap();
        let _ = files::load(folder.path(), &LoadOptions::default());
    }
}
