//! Cookies of a conversation (RFC 6265). They live as long as the conversation and go back to the server that set them.

use std::cmp::Reverse;
use std::net::IpAddr;

use http::header::{COOKIE, HeaderMap, HeaderValue, SET_COOKIE};
use jiff::Timestamp;
use url::{Host, Url};

use super::http::{HttpClient, HttpRequest, HttpResponse};
use super::{TurnError, TurnLimits};

/// Maximum number of cookies of a conversation; further ones are not kept.
const MAX_COOKIES: usize = 64;
/// Maximum length of a `Set-Cookie` header that is read, in bytes.
const MAX_COOKIE_BYTES: usize = 4096;

/// The cookies that servers set in a conversation.
#[derive(Debug, Default)]
pub struct ConversationCookies(Vec<ServerCookie>);

/// A cookie. It goes back to the host that set it, to no other one of its domain.
#[derive(Debug)]
struct ServerCookie {
    name: String,
    value: String,
    host: String,
    path: String,
    /// True if it may be sent only over TLS, or within this machine.
    is_secure: bool,
    expires: Option<Timestamp>,
}

impl ConversationCookies {
    /// Sends a request with the cookies, and keeps those of the response. Fails as [`HttpClient::send`] does.
    pub async fn send(
        &mut self,
        http: &HttpClient,
        mut outgoing: HttpRequest<'_>,
        limits: TurnLimits<'_>,
    ) -> Result<HttpResponse, TurnError> {
        let url = outgoing.url;
        self.add_to(url, &mut outgoing.headers);
        let response = http.send(outgoing, limits).await?;
        self.keep(url, response.headers());
        Ok(response)
    }

    /// Adds the cookies for an address to the headers of a request. They replace those of the settings with the same name.
    fn add_to(&self, url: &Url, headers: &mut HeaderMap) {
        let now = Timestamp::now();
        let mut ours: Vec<&ServerCookie> = self.0.iter().filter(|cookie| cookie.is_for(url, now)).collect();
        if ours.is_empty() {
            return;
        }
        ours.sort_by_key(|cookie| Reverse(cookie.path.len()));
        let given = headers.get(COOKIE).and_then(|given| given.to_str().ok()).unwrap_or_default();
        let is_replaced = |pair: &str| {
            let name = pair.split('=').next().unwrap_or_default().trim();
            ours.iter().any(|cookie| cookie.name == name)
        };
        let kept = given.split(';').map(str::trim).filter(|pair| !pair.is_empty() && !is_replaced(pair));
        let sent = ours.iter().map(|cookie| format!("{}={}", cookie.name, cookie.value));
        let all: Vec<String> = kept.map(str::to_string).chain(sent).collect();
        if let Ok(mut value) = HeaderValue::from_str(&all.join("; ")) {
            value.set_sensitive(true);
            headers.insert(COOKIE, value);
        }
    }

    /// Keeps the cookies of a response.
    fn keep(&mut self, url: &Url, headers: &HeaderMap) {
        let now = Timestamp::now();
        let values = headers.get_all(SET_COOKIE).iter().filter(|value| value.len() <= MAX_COOKIE_BYTES);
        for cookie in values.filter_map(|value| ServerCookie::parse(value.to_str().ok()?, url, now)) {
            let is_same = |known: &ServerCookie| {
                (&known.name, &known.host, &known.path) == (&cookie.name, &cookie.host, &cookie.path)
            };
            self.0.retain(|known| !is_same(known) && !known.has_expired(now));
            if !cookie.has_expired(now) && self.0.len() < MAX_COOKIES {
                self.0.push(cookie);
            }
        }
    }
}

impl ServerCookie {
    /// Reads a `Set-Cookie` header of a response from `url`; `None` if it is no cookie, or one of another domain.
    fn parse(text: &str, url: &Url, now: Timestamp) -> Option<ServerCookie> {
        let mut parts = text.split(';');
        let (name, value) = parts.next()?.split_once('=')?;
        let host = url.host_str()?.to_string();
        let mut cookie = ServerCookie {
            name: name.trim().to_string(),
            value: value.trim().to_string(),
            host,
            path: default_path(url).to_string(),
            is_secure: false,
            expires: None,
        };
        let mut max_age = None;
        for part in parts {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            let value = value.trim();
            match key.trim().to_ascii_lowercase().as_str() {
                "path" if value.starts_with('/') => cookie.path = value.to_string(),
                "secure" => cookie.is_secure = true,
                "expires" => cookie.expires = parse_date(value).or(cookie.expires),
                "max-age" => max_age = value.parse::<i64>().ok().or(max_age),
                "domain" if !is_in_domain(&cookie.host, value) => return None,
                _ => {}
            }
        }
        if let Some(seconds) = max_age {
            // A time beyond the range is that of a cookie that lasts.
            let end =
                now.as_second().checked_add(seconds.max(0)).and_then(|end| Timestamp::from_second(end).ok());
            cookie.expires = end;
        }
        (!cookie.name.is_empty()).then_some(cookie)
    }

    fn has_expired(&self, now: Timestamp) -> bool {
        self.expires.is_some_and(|end| end <= now)
    }

    fn is_for(&self, url: &Url, now: Timestamp) -> bool {
        let rest = url.path().strip_prefix(&self.path);
        let is_path =
            rest.is_some_and(|rest| rest.is_empty() || self.path.ends_with('/') || rest.starts_with('/'));
        url.host_str() == Some(&self.host)
            && is_path
            && (!self.is_secure || url.scheme() == "https" || is_loopback(url))
            && !self.has_expired(now)
    }
}

/// Returns the path that a cookie without one gets.
fn default_path(url: &Url) -> &str {
    match url.path().rfind('/') {
        None | Some(0) => "/",
        Some(end) => &url.path()[..end],
    }
}

/// True if a host is a domain or a part of it.
fn is_in_domain(host: &str, domain: &str) -> bool {
    let domain = domain.strip_prefix('.').unwrap_or(domain).to_ascii_lowercase();
    domain.is_empty()
        || host == domain
        || host.strip_suffix(&domain).is_some_and(|rest| rest.ends_with('.'))
            && host.parse::<IpAddr>().is_err()
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// Parses a date such as `Wed, 21 Oct 2026 07:28:00 GMT`, also with hyphens.
fn parse_date(text: &str) -> Option<Timestamp> {
    let zoned = jiff::fmt::rfc2822::parse(&text.replace('-', " ")).ok()?;
    Some(zoned.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The `Cookie` header of a request to `to`, after a response from `from` with these headers.
    fn sent_back(from: &str, set: &[&str], to: &str) -> String {
        let mut cookies = ConversationCookies::default();
        let mut headers = HeaderMap::new();
        for value in set {
            headers.append(SET_COOKIE, HeaderValue::from_str(value).expect("a header"));
        }
        cookies.keep(&from.parse().expect("an address"), &headers);
        let mut request = HeaderMap::from_iter([(COOKIE, HeaderValue::from_static("lang=en; sid=own"))]);
        cookies.add_to(&to.parse().expect("an address"), &mut request);
        request[COOKIE].to_str().expect("a text").to_string()
    }

    #[test]
    fn cookies_go_back_to_where_they_belong() {
        let own = "lang=en; sid=own";
        for (set, to, expected) in [
            ("sid=7", "http://a.example/chat", "lang=en; sid=7"),
            ("sid=7", "http://a.example:81/chat/x?y", "lang=en; sid=7"),
            ("sid=7; HttpOnly; SameSite=Lax", "https://a.example/", "lang=en; sid=7"),
            ("sid=a=b; Max-Age=60", "http://a.example/", "lang=en; sid=a=b"),
            ("sid=7; Domain=.example", "http://a.example/", "lang=en; sid=7"),
            ("sid=7; Expires=Wed, 21-Oct-2099 07:28:00 GMT", "http://a.example/", "lang=en; sid=7"),
            ("sid=7", "http://b.example/", own),
            ("sid=7", "http://x.a.example/", own),
            ("sid=7; Domain=b.example", "http://a.example/", own),
            ("sid=7; Domain=ample", "http://a.example/", own),
            ("sid=7; Path=/api", "http://a.example/apis", own),
            ("sid=7; Path=/api", "http://a.example/api/x", "lang=en; sid=7"),
            ("sid=7; Secure", "http://a.example/", own),
            ("sid=7; Secure", "https://a.example/", "lang=en; sid=7"),
            ("sid=7; Max-Age=0", "http://a.example/", own),
            ("sid=7; Expires=Wed, 21 Oct 2015 07:28:00 GMT", "http://a.example/", own),
            (
                "sid=7; Expires=Wed, 21 Oct 2015 07:28:00 GMT; Max-Age=60",
                "http://a.example/",
                "lang=en; sid=7",
            ),
            ("sid", "http://a.example/", own),
            ("=7", "http://a.example/", own),
        ] {
            assert_eq!(sent_back("http://a.example/", &[set], to), expected, "{set} {to}");
        }
        let local = sent_back("http://127.0.0.1:80/", &["sid=7; Secure"], "http://127.0.0.1:81/");
        assert_eq!(local, "lang=en; sid=7");
        // The default path is the folder of the request.
        assert_eq!(sent_back("http://a.example/api/chat", &["sid=7"], "http://a.example/other"), own);
        assert_eq!(
            sent_back("http://a.example/api/chat", &["sid=7"], "http://a.example/api/x"),
            "lang=en; sid=7"
        );
    }

    #[test]
    fn later_cookies_replace_earlier_ones() {
        let (from, to) = ("http://a.example/x/y", "http://a.example/x/y");
        assert_eq!(sent_back(from, &["sid=7", "sid=8", "b=1"], to), "lang=en; sid=8; b=1");
        assert_eq!(sent_back(from, &["sid=7", "sid=; Max-Age=0"], to), "lang=en; sid=own");
        // Longer paths come first.
        assert_eq!(sent_back(from, &["a=1; Path=/", "a=2; Path=/x"], to), "lang=en; sid=own; a=2; a=1");
        let many: Vec<String> = (0..1000).map(|number| format!("c{number}=1")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(sent_back(from, &many, to).matches("=1").count(), MAX_COOKIES);
        let long = format!("c={}", "x".repeat(MAX_COOKIE_BYTES));
        assert_eq!(sent_back(from, &[&long], to), "lang=en; sid=own");
    }
}
