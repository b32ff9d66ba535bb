//! Tests of the benchmark components at a small size. `hotseat-bench --quick` covers the whole program.

use std::net::{Ipv4Addr, SocketAddr};

use hotseat_bench::workload::{Workload, answer, marker, question};
use hotseat_bench::{bare_client, fake_agent, suites};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

async fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

#[tokio::test]
async fn bare_client_sends_every_request() {
    let (listener, address) = listen().await;
    tokio::spawn(fake_agent::serve(listener));
    let workload = Workload { cases: 10, turns: 3, parallel: 4 };
    bare_client::run_all(&format!("http://{address}/"), workload).await.unwrap();

    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    stream.shutdown().await.unwrap();
    let mut counted = String::new();
    stream.read_to_string(&mut counted).await.unwrap();
    assert!(counted.contains("\r\n\r\n30 "), "{counted}");
}

#[tokio::test]
async fn detects_answer_to_a_different_question() {
    let (listener, address) = listen().await;
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut received = [0; 4096];
        let _ = stream.read(&mut received).await.unwrap();
        let delta = answer(&question(1, 1));
        let events = format!(
            "data: {{\"type\":\"TEXT_MESSAGE_CONTENT\",\"messageId\":\"m\",\"delta\":\"{delta}\"}}\n\n\
             data: {{\"type\":\"RUN_FINISHED\",\"threadId\":\"t\",\"runId\":\"r\"}}\n\n"
        );
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", events.len());
        stream.write_all((head + &events).as_bytes()).await.unwrap();
    });
    let workload = Workload { cases: 1, turns: 1, parallel: 1 };
    let error = bare_client::run_all(&format!("http://{address}/"), workload).await.unwrap_err();
    assert!(error.to_string().contains("wrong answer"), "{error}");
}

#[test]
fn writes_each_case_once_across_files() {
    let folder = tempfile::tempdir().unwrap();
    suites::write_suites(folder.path(), 25_001, 2).unwrap();
    let mut files: Vec<_> =
        std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert_eq!(files.len(), 2);
    let text: String = files.iter().map(|file| std::fs::read_to_string(file).unwrap()).collect();
    for (case, document) in text.split("---\n").skip(1).enumerate() {
        for turn in [1, 2] {
            let (question, marker) = (question(case, turn), marker(case, turn));
            assert!(document.contains(&format!("user: \"{question}\"")), "{document}");
            assert!(document.contains(&format!("must_match: '{marker}\\?'")), "{document}");
        }
    }
    assert_eq!(text.matches("---\n").count(), 25_001);
}
