//! Requests to servers that the tests write byte by byte.

use std::time::Duration;

use bytes::Bytes;
use hotseat_http::{
    ClientError, HttpClients, HttpRequestError, IncomingResponse, OutgoingRequest, root_cause,
};
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, COOKIE};
use http::{HeaderMap, HeaderValue, Method};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use url::Url;

/// A server on this machine.
struct TestServer(TcpListener);

impl TestServer {
    async fn start() -> TestServer {
        TestServer(TcpListener::bind("127.0.0.1:0").await.unwrap())
    }

    /// The address of a path, with these credentials.
    fn url(&self, credentials: &str, path: &str) -> Url {
        Url::parse(&format!("http://{credentials}{}{path}", self.0.local_addr().unwrap())).unwrap()
    }

    async fn accept(&self) -> TcpStream {
        self.0.accept().await.unwrap().0
    }

    /// Accepts a connection, reads a request up to these bytes, and sends this answer. Returns the request and the connection.
    async fn answer(&self, end: &str, answer: &str) -> (String, TcpStream) {
        let mut connection = self.accept().await;
        let request = exchange(&mut connection, end, answer).await;
        (request, connection)
    }
}

/// Reads a request up to these bytes, and sends this answer.
async fn exchange(connection: &mut TcpStream, end: &str, answer: &str) -> String {
    let mut request = Vec::new();
    while !request.ends_with(end.as_bytes()) {
        assert_ne!(connection.read_buf(&mut request).await.unwrap(), 0, "the request ended early");
    }
    connection.write_all(answer.as_bytes()).await.unwrap();
    String::from_utf8(request).unwrap()
}

/// Sends a request, and returns the response with its body.
async fn fetch(request: OutgoingRequest) -> Result<(IncomingResponse, Vec<u8>), HttpRequestError> {
    let mut response = request.send().await?;
    let mut body = Vec::new();
    while let Some(bytes) = response.next_bytes().await? {
        body.extend_from_slice(&bytes);
    }
    Ok((response, body))
}

fn get(clients: &HttpClients, url: &Url) -> OutgoingRequest {
    clients.request(Method::GET, url).unwrap()
}

const END_OF_HEAD: &str = "\r\n\r\n";
const DONE: &str = "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\ndone";
/// The connection is not used again.
const LAST: &str = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 4\r\n\r\ndone";

#[tokio::test]
async fn requests_are_these_bytes() {
    let server = TestServer::start().await;
    let address = server.0.local_addr().unwrap();
    let program = concat!("user-agent: hotseat/", env!("CARGO_PKG_VERSION"), "\r\n");
    let own = HeaderMap::from_iter([
        (CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (ACCEPT, HeaderValue::from_static("text/event-stream")),
        (COOKIE, HeaderValue::from_static("a=b")),
    ]);
    for (clients, program) in
        [(HttpClients::default(), program), (HttpClients::default().without_user_agent(), "")]
    {
        let plain = clients.request(Method::GET, &server.url("", "/a%20b?c=d|e#f")).unwrap();
        let (sent, _) = tokio::join!(server.answer(END_OF_HEAD, LAST), fetch(plain));
        let expected =
            format!("GET /a%20b?c=d|e HTTP/1.1\r\naccept: */*\r\n{program}host: {address}\r\n\r\n");
        assert_eq!(sent.0, expected);

        let posted = clients.request(Method::POST, &server.url("me:a%20b@", "/")).unwrap();
        let posted = posted.headers(own.clone()).header("x-more", "1").body("{}");
        let (sent, _) = tokio::join!(server.answer("{}", LAST), fetch(posted));
        let expected = format!(
            "POST / HTTP/1.1\r\nauthorization: Basic bWU6YSBi\r\ncontent-type: application/json\r\n\
             accept: text/event-stream\r\ncookie: a=b\r\nx-more: 1\r\n{program}host: {address}\r\ncontent-length: 2\r\n\r\n{{}}"
        );
        assert_eq!(sent.0, expected);

        let empty = clients.request(Method::DELETE, &server.url("me@", "/")).unwrap();
        let key = HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_static("Bearer key"))]);
        let (sent, _) = tokio::join!(server.answer(END_OF_HEAD, LAST), fetch(empty.headers(key)));
        let expected = format!(
            "DELETE / HTTP/1.1\r\nauthorization: Bearer key\r\naccept: */*\r\n{program}host: {address}\r\n\r\n"
        );
        assert_eq!(sent.0, expected);
    }
}

#[tokio::test]
async fn bodies_are_whole_or_the_response_is_broken() {
    let server = TestServer::start().await;
    let clients = HttpClients::default();
    let url = server.url("", "/");
    for (answer, expected) in [
        ("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nwhole", Ok((200, "whole"))),
        (
            "HTTP/1.1 404 No\r\ntransfer-encoding: chunked\r\n\r\n2\r\nwh\r\n3\r\nole\r\n0\r\n\r\n",
            Ok((404, "whole")),
        ),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nwhole\r\n0\r\nx: y\r\n\r\n",
            Ok((200, "whole")),
        ),
        ("HTTP/1.1 200 OK\r\n\r\nuntil the end", Ok((200, "until the end"))),
        (
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\na",
            Ok((200, "a")),
        ),
        ("HTTP/1.1 204 No Content\r\n\r\n", Ok((204, ""))),
        ("HTTP/1.1 304 Not Modified\r\ncontent-length: 9\r\n\r\n", Ok((304, ""))),
        ("HTTP/1.1 307 Redirect\r\nlocation: /other\r\ncontent-length: 0\r\n\r\n", Ok((307, ""))),
        ("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nwho", Err("end of file before message length reached")),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nwho",
            Err("end of file before message length reached"),
        ),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nwhole\r\n",
            Err("unexpected EOF during chunk size line"),
        ),
        ("HTTP/1.1 200 OK\r\ncontent-le", Err("connection closed before message completed")),
        ("", Err("connection closed before message completed")),
        ("SSH-2.0-OpenSSH\r\n\r\n", Err("invalid HTTP version parsed")),
    ] {
        let serve = async { drop(server.answer(END_OF_HEAD, answer).await) };
        let (_, fetched) = tokio::join!(serve, fetch(get(&clients, &url)));
        match (fetched, expected) {
            (Ok((response, body)), Ok((status, text))) => {
                assert_eq!((response.status().as_u16(), &*body), (status, text.as_bytes()), "{answer:?}");
            }
            (Err(error), Err(message)) => {
                assert!(root_cause(&error).starts_with(message), "{answer:?}: {error:?}");
                assert!(!error.is_unsent() && !error.is_timeout(), "{error:?}");
                let is_body = answer.contains("\r\n\r\n") && answer.starts_with("HTTP");
                assert_eq!(matches!(error, HttpRequestError::Body(_)), is_body, "{error:?}");
            }
            (fetched, _) => panic!("{answer:?}: {:?}", fetched.map(|(_, body)| body)),
        }
    }
    let head = clients.request(Method::HEAD, &url).unwrap();
    let answer = "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n";
    let (_, fetched) = tokio::join!(server.answer(END_OF_HEAD, answer), fetch(head));
    assert_eq!(fetched.unwrap().1, b"");
}

#[tokio::test]
async fn bytes_are_read_as_they_arrive() {
    let server = TestServer::start().await;
    let clients = HttpClients::default();
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: 1\n\n";
    let url = server.url("", "/");
    let ((_, mut connection), response) =
        tokio::join!(server.answer(END_OF_HEAD, head), get(&clients, &url).send());
    let mut response = response.unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    assert_eq!(response.content_length(), None);
    assert_eq!(response.next_bytes().await.unwrap(), Some(Bytes::from("data: 1\n\n")));
    connection.write_all(b"data: 2\n\n").await.unwrap();
    assert_eq!(response.next_bytes().await.unwrap(), Some(Bytes::from("data: 2\n\n")));
    // The server sees that the client reads no more.
    drop(response);
    assert_eq!(connection.read(&mut [0]).await.unwrap(), 0);
}

#[tokio::test]
async fn large_bodies_are_sent_whole() {
    let server = TestServer::start().await;
    let body: Vec<u8> = (0..16 * 1024 * 1024).map(|index: u32| index.to_le_bytes()[1]).collect();
    let request = HttpClients::default().request(Method::POST, &server.url("", "/")).unwrap();
    let receive = async {
        let (mut connection, mut received) = (server.accept().await, Vec::new());
        while !received.ends_with(&body) {
            assert_ne!(connection.read_buf(&mut received).await.unwrap(), 0);
        }
        connection.write_all(DONE.as_bytes()).await.unwrap();
        String::from_utf8(received[..received.len() - body.len()].to_vec()).unwrap()
    };
    let (head, fetched) = tokio::join!(receive, fetch(request.body(body.clone())));
    assert!(head.contains("content-length: 16777216\r\n"), "{head}");
    assert_eq!(fetched.unwrap().1, b"done");
}

#[tokio::test]
async fn connections_are_used_again_unless_they_are_closed() {
    let server = TestServer::start().await;
    let clients = HttpClients::default();
    let url = server.url("", "/");
    let ((_, mut connection), fetched) =
        tokio::join!(server.answer(END_OF_HEAD, DONE), fetch(get(&clients, &url)));
    fetched.unwrap();
    let (_, fetched) = tokio::join!(exchange(&mut connection, END_OF_HEAD, DONE), fetch(get(&clients, &url)));
    fetched.unwrap();
    connection.shutdown().await.unwrap();
    // The client has seen the end.
    assert_eq!(connection.read(&mut [0]).await.unwrap(), 0);
    let (_, fetched) = tokio::join!(server.answer(END_OF_HEAD, DONE), fetch(get(&clients, &url)));
    fetched.unwrap();
}

#[tokio::test]
async fn no_request_is_sent_again_that_a_server_has_received() {
    let server = TestServer::start().await;
    let clients = HttpClients::default();
    let url = server.url("", "/");
    let ((_, mut connection), fetched) =
        tokio::join!(server.answer(END_OF_HEAD, DONE), fetch(get(&clients, &url)));
    fetched.unwrap();
    let close = async {
        exchange(&mut connection, END_OF_HEAD, "").await;
        drop(connection);
    };
    let ((), fetched) = tokio::join!(close, fetch(get(&clients, &url)));
    let error = fetched.unwrap_err();
    assert!(matches!(error, HttpRequestError::NoResponse(_)), "{error:?}");
    assert_eq!(root_cause(&error), "connection closed before message completed");
    let next = tokio::time::timeout(Duration::from_millis(50), server.0.accept()).await;
    assert!(next.is_err(), "the request was sent twice");
}

#[tokio::test]
async fn servers_that_cannot_be_reached_have_received_nothing() {
    let server = TestServer::start().await;
    let url = server.url("", "/");
    drop(server);
    let clients = HttpClients::default();
    let error = fetch(get(&clients, &url)).await.unwrap_err();
    assert!(error.is_unsent() && !error.is_timeout(), "{error:?}");
    assert!(root_cause(&error).contains("refused"), "{error:?}");

    let long = Url::parse(&format!("{url}?{}", "x".repeat(100_000))).unwrap();
    let error = fetch(get(&clients, &long)).await.unwrap_err();
    assert!(error.is_unsent(), "{error:?}");
    let named = get(&clients, &url).header("x y", "1");
    assert!(matches!(fetch(named).await, Err(HttpRequestError::Invalid(_))));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn connecting_has_a_time_limit() {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    // Further connections are not confirmed until one of these is accepted.
    let server = TestServer(socket.listen(1).unwrap());
    let address = server.0.local_addr().unwrap();
    let waiting = [(); 2].map(|()| std::net::TcpStream::connect(address).unwrap());
    let limit = Duration::from_millis(100);
    let clients = HttpClients::default().with_connect_timeout(limit);
    let error = fetch(get(&clients, &server.url("", "/"))).await.unwrap_err();
    assert!(error.is_unsent() && error.is_timeout(), "{error:?}");
    drop(waiting);
}

#[test]
fn encryption_is_a_feature() {
    let url = Url::parse("https://agent.example/").unwrap();
    let refused = matches!(HttpClients::default().request(Method::GET, &url), Err(ClientError::NoEncryption));
    assert_eq!(refused, !cfg!(feature = "tls"));
}

#[cfg(feature = "tls")]
#[tokio::test]
async fn server_without_encryption_is_named() {
    let server = TestServer::start().await;
    let address = server.0.local_addr().unwrap();
    let serving = tokio::spawn(async move {
        let mut connection = server.accept().await;
        connection.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n").await.unwrap();
        // Closed only after the client has read the answer.
        let _ = connection.read_to_end(&mut Vec::new()).await;
    });
    let url = Url::parse(&format!("https://{address}/")).unwrap();
    let error = fetch(get(&HttpClients::default(), &url)).await.unwrap_err();
    let words = "the server does not speak TLS (`https://`) at this port; try the address with `http://`";
    assert_eq!((error.is_unsent(), &*root_cause(&error)), (true, words));
    serving.await.unwrap();

    // A server that waits for more may be slow, too.
    let server = TestServer::start().await;
    let url = Url::parse(&format!("https://{}/", server.0.local_addr().unwrap())).unwrap();
    let clients = HttpClients::default().with_connect_timeout(Duration::from_millis(100));
    let error = fetch(get(&clients, &url)).await.unwrap_err();
    let words = "it accepted no encrypted connection within 0.1 s, as an overloaded server does, or one that does not speak TLS (`https://`) at this port; try the address with `http://`";
    assert_eq!((error.is_timeout(), &*root_cause(&error)), (true, words));
}
