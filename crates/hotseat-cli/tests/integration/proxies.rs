//! Agents that are reached by the proxies of the environment.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use hotseat_testkit::{FakeAgent, FakeReply};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::json;

use crate::common::http_agents::http_agent;
use crate::common::{Project, TestRun};

const SUITE: &str = "name: a\nturns: [{ user: hello }]\n";
const CREDENTIALS: &str = "user:pass%20word";
/// `user:pass word` in Base64.
const BASIC: &str = "Basic dXNlcjpwYXNzIHdvcmQ=";

/// A server that answers as an agent, or as a proxy on behalf of one.
fn server() -> FakeAgent {
    http_agent(|_| "hi")
}

fn project(endpoint: &str) -> Project {
    let settings = "body: { message: '{{message}}' }\n  map: { reply: $.reply }\n";
    let config = format!("target:\n  type: http\n  endpoint: '{endpoint}'\n  {settings}");
    Project::with_config(&config).suite("a", SUITE)
}

/// Runs a case with an agent at this address.
fn run(endpoint: &str, env: &[(&str, &str)]) -> TestRun {
    project(endpoint).test_in(env, &[])
}

fn port(server: &FakeAgent) -> String {
    server.url().trim_end_matches('/').rsplit(':').next().unwrap().to_string()
}

#[test]
fn a_proxy_gets_whole_addresses_and_its_credentials() {
    for name in ["HTTP_PROXY", "http_proxy", "ALL_PROXY"] {
        let proxy = server();
        let by_proxy = [(name, &*format!("http://{CREDENTIALS}@127.0.0.1:{}", port(&proxy)))];
        run("http://me:secret@agent.example/chat?a=b#c", &by_proxy).assert_all_passed();
        let requests = proxy.requests();
        assert_eq!(requests.len(), 1);
        assert_eq!(requests[0].path, "http://agent.example/chat?a=b");
        assert_eq!(requests[0].header("host"), Some("agent.example"));
        assert_eq!(requests[0].header("proxy-authorization"), Some(BASIC));
        assert_eq!(requests[0].header("authorization"), Some("Basic bWU6c2VjcmV0"));
    }
}

#[test]
fn excepted_hosts_and_this_machine_are_reached_without_proxies() {
    let (agent, proxy) = (server(), server());
    let proxy_url = proxy.url().to_string();
    // Every system connects this address to its own servers, but it is no loopback address.
    let other = format!("http://0.0.0.0:{}/chat", port(&agent));
    let by_proxy = [("ALL_PROXY", &*proxy_url), ("NO_PROXY", "example.com, 0.0.0.0")];
    run(&other, &by_proxy).assert_all_passed();
    for host in ["127.0.0.1", "localhost"] {
        let local = format!("http://{host}:{}/chat", port(&agent));
        run(&local, &by_proxy[..1]).assert_all_passed();
    }
    assert_eq!(agent.requests().iter().map(|request| &*request.path).collect::<Vec<_>>(), ["/chat"; 3]);
    assert_eq!(proxy.requests().len(), 0);
    run(&other, &by_proxy[..1]).assert_all_passed();
    assert_eq!(proxy.requests()[0].path, other);
}

#[test]
fn a_proxy_that_cannot_be_reached_or_refuses_is_named() {
    let refusing = FakeAgent::start(|_| FakeReply::json(407, &json!({})));
    let refusing = refusing.url().to_string();
    for (endpoint, proxy, message) in [
        ("http://agent.example/", "http://me:hidden@127.0.0.1:1", "http://127.0.0.1:1/: Connection refused"),
        ("https://agent.example/", "http://me:hidden@127.0.0.1:1", "http://127.0.0.1:1/: Connection refused"),
        ("http://agent.example/", "socks5://127.0.0.1:1", "socks5://127.0.0.1:1/: unsupported scheme socks5"),
        ("https://agent.example/", &*refusing, "/: tunnel error: proxy authorization required"),
    ] {
        let message = format!("cannot reach {endpoint}: through the proxy {message}");
        let message =
            if proxy == refusing { message.replace("proxy /", &format!("proxy {proxy}")) } else { message };
        let run = run(endpoint, &[("ALL_PROXY", proxy)]);
        run.assert_failure("a", "unreachable", &[&message]);
        assert!(!run.report.to_string().contains("hidden"), "{}", run.output);
    }
    let message =
        format!("cannot reach http://agent.example/: the proxy {refusing} wants credentials (HTTP 407)");
    run("http://agent.example/", &[("HTTP_PROXY", &*refusing)]).assert_failure(
        "a",
        "unreachable",
        &[&message],
    );
}

#[test]
fn an_unusable_proxy_is_an_error_before_anything_is_contacted() {
    for (variable, value, shown) in [
        ("HTTP_PROXY", "ftp://me:hidden@proxy.example", "ftp://redacted@proxy.example"),
        ("https_proxy", "http:///x", "http:///x"),
        ("ALL_PROXY", "me:hidden@a b", "redacted@a b"),
        ("HTTPS_PROXY", "http://proxy.example:99999", "http://proxy.example:99999"),
    ] {
        let agent = server();
        let project = project(&agent.url()).file("agent.yaml", "name: Clerk\n");
        let message = format!("`{variable}` is no address of a proxy: \"{shown}\"");
        for arguments in [&["test"][..], &["test", "--json"], &["serve", "agent.yaml"], &["doctor"]] {
            let output = project.command(arguments).env(variable, value).run();
            assert_eq!(output.code, 2, "{output}");
            let text = format!("{}{}", output.stdout, output.stderr).replace("\\\"", "\"");
            assert!(text.contains(&message) && !text.contains("hidden"), "{output}");
        }
        assert_eq!(agent.requests().len(), 0);
    }
    // An empty one is none.
    let agent = server();
    run(&agent.url(), &[("HTTP_PROXY", "")]).assert_all_passed();
}

/// A proxy that accepts a tunnel and is the encrypted server at its end. Returns its address, and what it reads: the head of
/// the request for the tunnel, and the request in it if the client trusts the certificate.
fn tunnel(certificate: &str) -> (String, JoinHandle<(String, Option<String>)>) {
    let config = server_config(certificate);
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = format!("http://{CREDENTIALS}@{}", listener.local_addr().unwrap());
    let serving = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let head = read_head(&mut stream).unwrap();
        stream.write_all(b"HTTP/1.1 200 Connected\r\n\r\n").unwrap();
        let mut connection = rustls::ServerConnection::new(config).unwrap();
        let mut stream = rustls::Stream::new(&mut connection, &mut stream);
        let request = read_head(&mut stream);
        if request.is_some() {
            let body = r#"{"reply":"hi"}"#;
            let head = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: application/json";
            let answer = format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
            stream.write_all(answer.as_bytes()).unwrap();
        }
        (head, request)
    });
    (address, serving)
}

fn server_config(certificate: &str) -> Arc<rustls::ServerConfig> {
    let folder = samples();
    let certificate = CertificateDer::from_pem_file(format!("{folder}/{certificate}")).unwrap();
    let key = PrivateKeyDer::from_pem_file(format!("{folder}/key.pem")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ServerConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    Arc::new(builder.with_single_cert(vec![certificate], key).unwrap())
}

/// Folder with certificates of `agent.example` that only these tests trust, and their key: one of the server, one of an
/// authority, and one that has expired.
fn samples() -> String {
    format!("{}/tests/integration/samples/tls", env!("CARGO_MANIFEST_DIR"))
}

/// Reads up to an empty line. `None` if the connection ends before.
fn read_head(stream: &mut impl Read) -> Option<String> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read(&mut byte) {
            Ok(1) => head.push(byte[0]),
            _ => return None,
        }
    }
    String::from_utf8(head).ok()
}

#[test]
fn encrypted_agents_are_reached_through_a_tunnel() {
    let trusted = format!("{}/certificate.pem", samples());
    let (proxy, serving) = tunnel("certificate.pem");
    let env = [("HTTPS_PROXY", &*proxy), ("SSL_CERT_FILE", &*trusted)];
    run("https://me:secret@agent.example/chat", &env).assert_all_passed();
    let (head, request) = serving.join().unwrap();
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(
        head,
        format!(
            "CONNECT agent.example:443 HTTP/1.1\r\nHost: agent.example:443\r\n\
             user-agent: hotseat/{version}\r\nproxy-authorization: {BASIC}\r\n\r\n"
        )
    );
    let request = request.unwrap();
    assert!(request.starts_with("POST /chat HTTP/1.1\r\n"), "{request}");
    assert!(request.contains("authorization: Basic bWU6c2VjcmV0\r\n"), "{request}");
    assert!(!request.contains("proxy-authorization"), "{request}");

    let (proxy, serving) = tunnel("certificate.pem");
    // The certificates of the machine.
    let env = [("HTTPS_PROXY", &*proxy)];
    run("https://agent.example/", &env).assert_failure(
        "a",
        "unreachable",
        &["the certificate of the server was not issued by an authority that this machine trusts; set `SSL_CERT_FILE`"],
    );
    assert_eq!(serving.join().unwrap().1, None);
}

#[test]
fn an_error_of_a_certificate_says_what_to_do() {
    for (certificate, host, message) in [
        (
            "authority.pem",
            "agent",
            "is one of an authority (`CA:TRUE`), which no server may use; create one with `-addext",
        ),
        ("expired.pem", "agent", "has expired; renew it"),
        (
            "certificate.pem",
            "other",
            "is not for other.example, only for agent.example; use one of these hosts",
        ),
    ] {
        let (proxy, serving) = tunnel(certificate);
        let trusted = format!("{}/{certificate}", samples());
        let env = [("HTTPS_PROXY", &*proxy), ("SSL_CERT_FILE", &*trusted)];
        let message = format!("the certificate of the server {message}");
        run(&format!("https://{host}.example/"), &env).assert_failure("a", "unreachable", &[&message]);
        assert_eq!(serving.join().unwrap().1, None);
    }
}

#[test]
fn a_machine_without_certificates_reaches_plain_agents_only() {
    let agent = server();
    let missing = [("SSL_CERT_FILE", "missing.pem"), ("SSL_CERT_DIR", "missing")];
    run(&agent.url(), &missing).assert_all_passed();
    let message = "the HTTP client could not be created: ";
    run("https://127.0.0.1:1/", &missing).assert_failure("a", "unreachable", &[message]);
}
