//! Descriptions of what can be wrong with an encrypted connection.

use std::error::Error;
use std::io;

use rustls::{CertificateError, InvalidMessage};

/// Variable with the file of the trusted certificates. Only the platforms that [`READS_FILES`] names read it.
const CERTIFICATE_FILE: &str = "SSL_CERT_FILE";
/// True if trusted certificates are files, and not in a store of the system.
const READS_FILES: bool = cfg!(all(unix, not(target_vendor = "apple"), not(target_os = "android")));

/// Describes an error of a connection that is one of its encryption, with the next step.
pub(crate) fn describe_problem(mut cause: &(dyn Error + 'static)) -> Option<String> {
    // An I/O error is not the source of the one that contains it.
    while let Some(inner) = cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        cause = inner;
    }
    match cause.downcast_ref::<rustls::Error>()? {
        rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
            let problem = "the server does not speak TLS (`https://`) at this port";
            Some(format!("{problem}; try the address with `http://`"))
        }
        rustls::Error::InvalidCertificate(error) => describe_certificate_problem(error),
        _ => None,
    }
}

fn describe_certificate_problem(error: &CertificateError) -> Option<String> {
    let problem = match error {
        CertificateError::UnknownIssuer => {
            let trusted = match READS_FILES {
                true => format!("set `{CERTIFICATE_FILE}` to the file of its issuer"),
                false => "add the certificate of its issuer to those of the system".to_string(),
            };
            format!("was not issued by an authority that this machine trusts; {trusted}")
        }
        CertificateError::BadSignature => {
            "was not signed by the trusted certificate of its issuer's name; trust the one that the server uses".to_string()
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "has expired; renew it, or correct the clock of this machine".to_string()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "is not valid yet; correct the clock of this machine, or wait".to_string()
        }
        CertificateError::NotValidForName => "is not for this host; use a name in the certificate".to_string(),
        CertificateError::NotValidForNameContext { expected, presented } => {
            let expected = expected.to_str();
            match presented.is_empty() {
                true => format!("names no host; create one with `subjectAltName` for {expected}"),
                false => {
                    // Each is written as `DnsName("agent.example")`.
                    let host = |name: &String| {
                        let mut parts = name.split(['(', '"', ')']).filter(|part| !part.is_empty());
                        parts.next_back().unwrap_or_default().to_string()
                    };
                    let hosts: Vec<String> = presented.iter().map(host).collect();
                    format!("is not for {expected}, only for {}; use one of these hosts", hosts.join(", "))
                }
            }
        }
        // The verifier has no type of its own for it.
        CertificateError::Other(other) if other.0.to_string() == "CaUsedAsEndEntity" => {
            "is one of an authority (`CA:TRUE`), which no server may use; create one with \
             `-addext basicConstraints=critical,CA:FALSE`"
                .to_string()
        }
        _ => return None,
    };
    Some(format!("the certificate of the server {problem}"))
}
