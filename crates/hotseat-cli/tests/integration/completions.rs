//! `hotseat completions` and `hotseat man`.

use std::fs;

use crate::common::Project;

/// Names of all commands, from the help.
fn commands(project: &Project) -> Vec<String> {
    let help = project.hotseat(&["--help"]).stdout;
    let (_, commands) = help.split_once("Commands:\n").expect("the help lists commands");
    let lines = commands.lines().take_while(|line| !line.is_empty());
    let names = lines.filter_map(|line| line.strip_prefix("  ")?.split(' ').next().map(str::to_string));
    names.filter(|name| !name.is_empty() && name != "help").collect()
}

#[test]
fn completions_name_commands_and_flags() {
    let project = Project::empty();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let output = project.hotseat(&["completions", shell]);
        assert_eq!((output.code, &*output.stderr), (0, ""), "{shell}");
        for word in commands(&project).iter().map(String::as_str).chain(["last-failed", "min-pass-rate"]) {
            assert!(output.stdout.contains(word), "{shell}: {word}");
        }
    }
    project.hotseat(&["completions", "tcsh"]).assert_stderr(2, &["possible values: bash"]);
}

#[test]
fn bash_completes_commands_and_flags() {
    let project = Project::empty();
    project.workspace.file("hotseat.bash", &project.hotseat(&["completions", "bash"]).stdout);
    for (words, completed) in [
        ("hotseat rech", "recheck"),
        ("hotseat test --last", "--last-failed"),
        ("hotseat schema sui", "suite"),
    ] {
        let last = words.split(' ').next_back().unwrap_or_default();
        let previous = words.split(' ').rev().nth(1).unwrap_or_default();
        let script = format!(
            "source hotseat.bash; COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
             _hotseat hotseat '{last}' '{previous}'; echo ${{COMPREPLY[@]}}"
        );
        let output = project.workspace.run("bash", &["-c", &script]);
        assert_eq!(output.stdout.trim(), completed, "{output}");
    }
}

#[test]
fn each_command_has_a_manual_page() {
    let project = Project::empty();
    let output = project.hotseat(&["man", "share/man/man1"]);
    assert_eq!((output.code, &*output.stdout, &*output.stderr), (0, "", ""), "{output}");
    let page = |name: &str| project.workspace.read(&format!("share/man/man1/{name}.1"));
    let overview = page("hotseat");
    for name in commands(&project) {
        assert!(page(&format!("hotseat-{name}")).contains(".SH SYNOPSIS"), "{name}");
        assert!(overview.contains(&format!("hotseat\\-{name}(1)")), "{name}: {overview}");
    }
    // A folder that cannot be written.
    fs::write(project.workspace.path("file"), "").expect("the folder is writable");
    project.hotseat(&["man", "file"]).assert_stderr(3, &["cannot write manual pages to file"]);
}
