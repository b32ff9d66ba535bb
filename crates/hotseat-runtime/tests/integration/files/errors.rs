//! Every error of agent files with its diagnostic. Review the snapshot.

use std::fmt::Write as _;
use std::path::Path;

use hotseat_runtime::files::{self, LoadOptions};

/// Title of a folder, and its files by name and text.
type Case = (&'static str, &'static [(&'static str, &'static str)]);

const SCRIPT: (&str, &str) = ("script.yaml", "rules: [{ reply: hi }]\n");

const CASES: &[Case] = &[
    ("a folder without an agent", &[("other.yaml", "name: A\n")]),
    ("an agent without a name", &[("agent.yaml", "system: hi\n"), SCRIPT]),
    ("a name without a letter", &[("agent.yaml", "name: '!!'\n"), SCRIPT]),
    ("a misspelt key", &[("agent.yaml", "name: A\nsytem: hi\n"), SCRIPT]),
    ("nobody who speaks", &[("agent.yaml", "name: A\n")]),
    ("a wrong script", &[("agent.yaml", "name: A\n"), ("script.yaml", "rules: [{ replly: hi }]\n")]),
    (
        "a connector that is not there",
        &[
            (
                "agent.yaml",
                "name: A\nconnector: fst\nconnectors:\n  fast: { type: scripted, script: script.yaml }\n",
            ),
            SCRIPT,
        ],
    ),
    (
        "wrong connectors",
        &[(
            "agent.yaml",
            "name: A\nconnector: a\nconnectors:\n  a: { type: openai }\n  b: { type: openai, model: m, script: s.yaml }\n  c: { type: gpt }\n  d: { script: s.yaml }\n",
        )],
    ),
    (
        "variables that are not set, and other things between braces",
        &[(
            "agent.yaml",
            "name: A\nconnector: a\nconnectors:\n  a:\n    type: anthropic\n    model: m\n    api_key: 'key ${ENV.NOBODY_SETS_THIS}'\n    headers: { a: '${HOME}', b: '${ENV.X', c: '$${fine}' }\n",
        )],
    ),
    (
        "an address that is none, and files that are not there",
        &[(
            "agent.yaml",
            "name: A\nconnector: a\nconnectors:\n  a: { type: openai, model: m, base_url: 'ftp://x' }\n  b: { type: scripted, script: none.yaml }\ntools:\n  - { name: t, agent: { name: B, connector: b } }\n",
        )],
    ),
    ("a tool with nothing behind it", &[("agent.yaml", "name: A\ntools:\n  - name: t\n"), SCRIPT]),
    (
        "a tool with two things behind it",
        &[
            ("agent.yaml", "name: A\ntools:\n  - name: t\n    client: true\n    task: { steps: [] }\n"),
            SCRIPT,
        ],
    ),
    (
        "tools of one name",
        &[
            (
                "agent.yaml",
                "name: A\ntools:\n  - { name: t, client: true }\n  - { name: t, client: true }\n  - { name: u, client: false }\n",
            ),
            SCRIPT,
        ],
    ),
    (
        "modes that mean nothing",
        &[
            (
                "agent.yaml",
                "name: A\ntools:\n  - { name: t, task: { steps: [] }, mode: loop_in }\n  - { name: u, agent: ., mode: loop_in, async: true }\n  - { name: v, agent: ., mode: loop_in, timeout_ms: 1 }\n",
            ),
            SCRIPT,
        ],
    ),
    (
        "wrong schemas",
        &[
            (
                "agent.yaml",
                "name: A\ntools:\n  - name: t\n    client: true\n    input:\n      type: objekt\n  - name: u\n    client: true\n    input:\n      properties:\n        a: { typ: string }\n        b: { type: array, items: { minimum: low } }\n",
            ),
            SCRIPT,
        ],
    ),
    (
        "references to what is not there",
        &[
            (
                "agent.yaml",
                "name: A\ncontext: nowhere\ntools:\n  - { name: t, task: sned-mail }\n  - { name: u, workflow: w }\n  - { name: v, agent: b }\n  - { name: w, task: ./tasks/none.yaml }\n",
            ),
            ("tasks/send-mail.yaml", "steps: [{ echo: {} }]\n"),
            ("tasks/fetch.yaml", "steps: [{ echo: {} }]\n"),
            ("agents/reviewer/agent.yaml", "name: R\n"),
            SCRIPT,
        ],
    ),
    (
        "mistakes in several files at once",
        &[
            (
                "agent.yaml",
                "name: A\nsystm: hi\ntools:\n  - { name: t, task: t }\n  - { name: w, workflow: w }\n  - { name: v, agent: b }\n",
            ),
            ("tasks/t.yaml", "stps: []\n"),
            ("workflows/w.yaml", "nodes: [{ name: a }]\n"),
            ("agents/b.yaml", "name: B\nmay_decline: perhaps\n"),
            SCRIPT,
        ],
    ),
    (
        "a file that is not YAML",
        &[
            ("agent.yaml", "name: A\ntools:\n  - { name: t, task: t }\n"),
            ("tasks/t.yaml", "steps: [\n"),
            SCRIPT,
        ],
    ),
    (
        "steps that do nothing, or too much",
        &[
            ("agent.yaml", "name: A\ntools:\n  - { name: t, task: t }\n"),
            (
                "tasks/t.yaml",
                "steps:\n  - name: a\n  - { name: b, echo: {}, fail: no }\n  - { name: c, echo: { x: 1 } }\n  - { name: d, echo: {} }\n  - { name: d, memory: forget }\n",
            ),
            SCRIPT,
        ],
    ),
    (
        "mocks that contradict themselves",
        &[
            ("agent.yaml", "name: A\ntools:\n  - { name: t, task: t }\n"),
            (
                "tasks/t.yaml",
                "steps:\n  - mock: {}\n  - mock: { returns: 1, computes: input.x }\n  - mock: { returns: 1, fails: no }\n  - mock: { returns: 1, first_attempts: 2 }\n  - mock: { returns: 1, delay_ms: [9, 1] }\n  - mock: { returns: 1, delay_ms: [1, 2, 3] }\n  - fail: { message: no, kind: server, code: TIMEOUT }\n  - fail: { kind: sever }\n",
            ),
            SCRIPT,
        ],
    ),
    (
        "expressions that cannot be read",
        &[
            (
                "agent.yaml",
                "name: A\ntools:\n  - { name: t, task: t, reads: { x: 'input.' }, writes: { y: 'rslt.y' } }\n",
            ),
            (
                "tasks/t.yaml",
                "steps:\n  - mock:\n      computes: |\n        {\n          a: input.a,\n          b: input.b +\n        }\n  - echo: {}\n    input: { a: 'inptu.a' }\n    when: \"lenght(input.a) > 0\"\n  - echo: {}\n    output: { outptu.a: result.a, output.b: 'hello' }\n",
            ),
            SCRIPT,
        ],
    ),
    (
        "a retry that is never made",
        &[
            (
                "agent.yaml",
                "name: A\ntools:\n  - name: t\n    task: { steps: [{ echo: {}, on_failure: retry, input: { '*': input } }] }\n",
            ),
            SCRIPT,
        ],
    ),
    (
        "two tasks of one name",
        &[
            (
                "agent.yaml",
                "name: A\ntools:\n  - { name: t, task: t }\n  - name: u\n    task: { name: T, steps: [{ echo: {} }] }\n",
            ),
            ("tasks/t.yaml", "steps: []\n"),
            SCRIPT,
        ],
    ),
    (
        "two agents of one name",
        &[
            ("agent.yaml", "name: A\ntools:\n  - { name: t, agent: b }\n"),
            ("agents/b.yaml", "name: a\n"),
            SCRIPT,
        ],
    ),
    (
        "nodes and ways that lead nowhere",
        &[
            ("agent.yaml", "name: A\ntools:\n  - { name: w, workflow: w }\n"),
            (
                "workflows/w.yaml",
                "initial: strat\nnodes:\n  - { name: start, task: { steps: [] } }\n  - { name: end, task: { steps: [] } }\n  - { name: end, task: { steps: [] } }\ntransitions:\n  - { from: start, to: edn }\n",
            ),
            SCRIPT,
        ],
    ),
    (
        "a node that no way reaches",
        &[
            ("agent.yaml", "name: A\ntools:\n  - { name: w, workflow: w }\n"),
            (
                "workflows/w.yaml",
                "nodes:\n  - { name: a, task: &t { name: T, steps: [] } }\n  - { name: b, task: *t }\n  - { name: c, task: *t }\ntransitions:\n  - { from: a, to: b }\n  - { from: c, to: b }\n",
            ),
            SCRIPT,
        ],
    ),
    (
        "branches that never come together",
        &[
            ("agent.yaml", "name: A\ntools:\n  - { name: w, workflow: w }\n"),
            (
                "workflows/w.yaml",
                "nodes:\n  - { name: a, task: &t { name: T, steps: [] } }\n  - { name: b, task: *t }\n  - { name: c, task: *t }\ntransitions:\n  - { from: a, to: b, spawn: 2, group: pair }\n  - { from: b, to: c, fan_in: { group: pairs, merge: { collect: output.all } } }\n",
            ),
            SCRIPT,
        ],
    ),
    (
        "transitions that contradict themselves",
        &[
            ("agent.yaml", "name: A\ntools:\n  - { name: w, workflow: w }\n"),
            (
                "workflows/w.yaml",
                "nodes:\n  - { name: a, task: &t { name: T, steps: [] }, input: {} }\n  - { name: b, task: *t, workflow: x }\ntransitions:\n  - { from: a, to: b, spawn: 2, for_each: { collection: input.list, item: input } }\n  - { from: a, to: b, fan_in: { group: g, merge: { collect: output.a, append: output.b }, on_timeout: fail } }\n  - { from: a, to: b, fan_in: { group: g, join: some, merge: { collect: all } } }\n",
            ),
            SCRIPT,
        ],
    ),
    (
        "transitions that are counted together",
        &[
            ("agent.yaml", "name: A\ntools:\n  - { name: w, workflow: w }\n"),
            (
                "workflows/w.yaml",
                "nodes:\n  - { name: a, task: { steps: [] } }\ntransitions:\n  - { from: a, to: a, max_iterations: 2, when: input.x }\n  - { from: a, to: a, when: input.y, max_iterations: 1, name: other }\n  - { from: a, to: a, when: input.z }\n",
            ),
            SCRIPT,
        ],
    ),
    (
        "a workflow that runs within itself",
        &[
            ("agent.yaml", "name: A\ntools:\n  - { name: w, workflow: w }\n"),
            ("workflows/w.yaml", "nodes: [{ name: a, workflow: x }]\n"),
            ("workflows/x.yaml", "nodes: [{ name: a, workflow: w }]\n"),
            SCRIPT,
        ],
    ),
    (
        "limits that are none",
        &[
            (
                "agent.yaml",
                "name: A\nlimits: { max_moves: 0, recent_turns: -1, model: { attempts: 0, timeout: 3 } }\n",
            ),
            SCRIPT,
        ],
    ),
];

/// Diagnostics for a folder with these files.
fn render_diagnostics(title: &str, files: &[(&str, &str)]) -> String {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap_or(Path::new("."))).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let mistakes = files::load(folder.path(), &LoadOptions::default()).expect_err(title);
    let root = folder.path().display().to_string();
    mistakes.render(false, 120).replace(&format!("{root}/"), "").replace(&root, "FOLDER")
}

#[test]
fn every_error_reports_its_location() {
    let mut all = String::new();
    for (title, files) in CASES {
        writeln!(all, "## {title}\n{}\n", render_diagnostics(title, files)).unwrap();
    }
    insta::assert_snapshot!(all);
}
