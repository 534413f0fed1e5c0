//! Who the client is, by its own certificate, as endpoints hear it.
//!
//! Endpoints believe these fields, so nobody else may write them: where any listener of the
//! configuration sends them, every listener takes them out of every request, from trusted proxies too.
//! With them goes what CGI-style endpoints read as the same name, such as `X_Client_Cert_Verify`
//! ([`is_alike`]). Where none does, they go on from trusted proxies that write them, and from nobody else
//! ([`Trust`](crate::trust::Trust)). No trailer has them.
//!
//! A configuration without client certificates pays one branch a request.

use subak_certificate::ClientIdentity;
use subak_config as config;
use subak_message::{BadField, Fields, is_alike};

/// What only Subak may say.
const PREFIX: &[u8] = b"x-client-cert-";
/// RFC 9440.
const CERTIFICATE: &[u8] = b"client-cert";
const CHAIN: &[u8] = b"client-cert-chain";

/// What is done about identities at one listener.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Identities {
    /// Whether clients' own words are taken out.
    is_guarded: bool,
    /// Whether endpoints are told who the client is.
    tells: bool,
    /// Whether they get the certificate itself.
    sends: bool,
}

impl Identities {
    /// Of a listener of this configuration.
    pub(crate) fn of(listener: &config::Listener, config: &config::Config) -> Identities {
        let client = |listener: &config::Listener| {
            let client = listener.tls.as_ref().and_then(|tls| tls.client.as_ref());
            client.map_or((false, false), |client| (client.headers, client.certificate_header))
        };
        let (tells, sends) = client(listener);
        let is_guarded = config.listeners.iter().any(|one| client(one) != (false, false));
        Identities { is_guarded, tells, sends }
    }

    /// Takes out what the client says of itself, and says what is known.
    #[inline]
    pub(crate) fn tell(
        self,
        fields: &mut Fields,
        client: Option<&ClientIdentity>,
    ) -> Result<(), BadField> {
        if self.is_guarded { self.replace(fields, client) } else { Ok(()) }
    }

    fn replace(self, fields: &mut Fields, client: Option<&ClientIdentity>) -> Result<(), BadField> {
        fields.remove_where(|field| is_identity(field.name));
        if self.tells {
            let verified = if client.is_some() { "success" } else { "none" };
            fields.push(b"X-Client-Cert-Verify", verified.as_bytes())?;
        }
        let Some(client) = client else { return Ok(()) };
        if self.tells {
            for (name, value) in [
                (&b"X-Client-Cert-Subject"[..], &client.subject),
                (b"X-Client-Cert-Issuer", &client.issuer),
                (b"X-Client-Cert-SAN", &client.names),
                (b"X-Client-Cert-Serial", &client.serial),
                (b"X-Client-Cert-Fingerprint", &client.fingerprint),
            ] {
                if !value.is_empty() {
                    fields.push(name, value.as_bytes())?;
                }
            }
        }
        if self.sends {
            fields.push(b"Client-Cert", client.certificate.as_bytes())?;
        }
        Ok(())
    }
}

/// Whether endpoints could take this name for one of those that only Subak may write.
fn is_identity(name: &[u8]) -> bool {
    is_alike(name, CERTIFICATE)
        || is_alike(name, CHAIN)
        || name.get(..PREFIX.len()).is_some_and(|start| is_alike(start, PREFIX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forged() -> Fields {
        let mut fields = Fields::new();
        for name in [
            "X-Client-Cert-Verify",
            "x-client-cert-subject",
            "X_Client_Cert_Verify",
            "X-Client_Cert-Anything",
            "X.Client.Cert.Verify",
            "CLIENT-CERT",
            "Client_Cert",
            "client-cert-chain",
        ] {
            fields.push(name.as_bytes(), b"forged").expect("a field");
        }
        fields.push(b"X-Client-Certificate", b"another name").expect("a field");
        fields
    }

    fn seen(fields: &Fields) -> Vec<(String, String)> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        fields.iter().map(|field| (text(field.name), text(field.value))).collect()
    }

    #[test]
    fn nobody_else_says_who_the_client_is() {
        let guarded = Identities { is_guarded: true, ..Identities::default() };
        let mut fields = forged();
        guarded.tell(&mut fields, None).expect("told");
        assert_eq!(seen(&fields), [("X-Client-Certificate".into(), "another name".into())]);
        // Nothing is touched where no listener uses the names.
        let mut fields = forged();
        Identities::default().tell(&mut fields, None).expect("told");
        assert_eq!(fields.len(), 9);
    }

    #[test]
    fn endpoints_hear_who_it_is() {
        let all = Identities { is_guarded: true, tells: true, sends: true };
        let mut fields = forged();
        all.tell(&mut fields, None).expect("told");
        assert_eq!(seen(&fields)[1], ("X-Client-Cert-Verify".into(), "none".into()));
        assert_eq!(fields.len(), 2);
        let identity = ClientIdentity {
            subject: "CN=alice".into(),
            issuer: "CN=ca".into(),
            names: "".into(),
            serial: "01".into(),
            fingerprint: "ab".into(),
            certificate: ":AA==:".into(),
            ends_at: 0,
        };
        let mut fields = forged();
        all.tell(&mut fields, Some(&identity)).expect("told");
        let expected = [
            ("X-Client-Certificate", "another name"),
            ("X-Client-Cert-Verify", "success"),
            ("X-Client-Cert-Subject", "CN=alice"),
            ("X-Client-Cert-Issuer", "CN=ca"),
            ("X-Client-Cert-Serial", "01"),
            ("X-Client-Cert-Fingerprint", "ab"),
            ("Client-Cert", ":AA==:"),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(seen(&fields), expected);
    }
}
