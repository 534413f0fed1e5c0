//! Which fields tell of a client, and from whom they are believed.
//!
//! Proxies name the client in one of many fields, and pass on what the client wrote in the others. The
//! operator says which field the trusted proxies write. All others are removed before a condition, a key
//! or a limit looks at the request, whoever sends them; the named one, unless a trusted proxy sends it.

use subak_config::{HeaderName, ProxyField, TrustedProxies};
use subak_message::{Field, Fields, Known, is_alike};

/// The family of X-Forwarded-For, which one proxy writes together, beside the known names.
const FAMILY: [&str; 4] =
    ["X-Forwarded-Port", "X-Forwarded-Scheme", "X-Forwarded-Server", "X-Forwarded-Ssl"];

/// The trusted proxies of a listener, compiled.
#[derive(Clone, Default, Debug)]
pub(crate) struct Trust {
    proxies: TrustedProxies,
    /// The names among the configured ones that Subak does not know as claims about a client.
    own: Box<[HeaderName]>,
}

impl Trust {
    /// Of these proxies.
    pub(crate) fn new(proxies: &TrustedProxies) -> Trust {
        let field = match &proxies.field {
            ProxyField::Address(name) => Some(name),
            ProxyField::XForwardedFor | ProxyField::Forwarded => None,
        };
        let own = field.into_iter().chain(&proxies.also).filter(|name| !is_known_claim(name));
        Trust { own: own.cloned().collect(), proxies: proxies.clone() }
    }

    /// The proxies as configured.
    pub(crate) fn proxies(&self) -> &TrustedProxies {
        &self.proxies
    }

    /// Removes what is not believed of a peer. `is_trusted`: it is one of the proxies.
    #[inline]
    pub(crate) fn clean(&self, fields: &mut Fields, is_trusted: bool) {
        fields.remove_claims(|field| is_trusted && self.believes(field));
        if !self.own.is_empty() {
            self.clean_own(fields, is_trusted);
        }
    }

    /// Removes from a request's trailers what only the proxies may write, whoever sends it.
    pub(crate) fn clean_trailers(&self, trailers: &mut Fields) {
        if !self.own.is_empty() {
            self.clean_own(trailers, false);
        }
    }

    #[inline(never)]
    fn clean_own(&self, fields: &mut Fields, is_trusted: bool) {
        fields.remove_where(|field| {
            self.own.iter().any(|name| {
                let is_plain = is_trusted && names(name, field.name, <[u8]>::eq_ignore_ascii_case);
                names(name, field.name, is_alike) && !is_plain
            })
        });
    }

    /// Whether the proxies write this field, which has its plain spelling.
    fn believes(&self, field: Field<'_>) -> bool {
        let is_own = match &self.proxies.field {
            ProxyField::XForwardedFor => match field.known {
                Known::XForwardedFor
                | Known::XForwardedProto
                | Known::XForwardedHost
                | Known::XForwardedPrefix => true,
                Known::Other => {
                    FAMILY.iter().any(|name| name.as_bytes().eq_ignore_ascii_case(field.name))
                }
                _ => false,
            },
            ProxyField::Forwarded => field.known == Known::Forwarded,
            ProxyField::Address(name) => name.as_str().as_bytes().eq_ignore_ascii_case(field.name),
        };
        let is_also = |name: &HeaderName| names(name, field.name, <[u8]>::eq_ignore_ascii_case);
        is_own || self.proxies.also.iter().any(is_also)
    }
}

/// Whether a configured name, which may end with `*`, names this field.
fn names(configured: &HeaderName, field: &[u8], is_same: impl Fn(&[u8], &[u8]) -> bool) -> bool {
    let configured = configured.as_str().as_bytes();
    match configured.strip_suffix(b"*") {
        Some(start) => field.get(..start.len()).is_some_and(|begun| is_same(start, begun)),
        None => is_same(configured, field),
    }
}

/// Whether [`Fields::remove_claims`] knows every field of this name.
fn is_known_claim(name: &HeaderName) -> bool {
    let mut fields = Fields::new();
    let pushed = fields.push_received(name.as_str().trim_end_matches(['*', '-']).as_bytes(), b"");
    fields.remove_claims(|_| false);
    pushed.is_ok() && fields.is_empty()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn trust(text: &str) -> Trust {
        let text = format!(
            "[listener.web]\nbind = \"0.0.0.0:80\"\npool = \"app\"\ntrusted_proxies = {text}\n\
             [pool.app]\nendpoints = [\"10.0.0.2:80\"]\n"
        );
        let parsed = subak_config::parse(&text, Path::new("subak.toml"));
        let config = parsed.config.unwrap_or_else(|| panic!("{:?}", parsed.diagnostics));
        Trust::new(&config.listeners[0].trusted_proxies)
    }

    const ALL: [&str; 16] = [
        "X-Forwarded-For",
        "X-Forwarded-Proto",
        "X-Forwarded-Port",
        "X-Forwarded-User",
        "Forwarded",
        "X-Real-IP",
        "CF-Connecting-IP",
        "True-Client-IP",
        "X-Client-Cert-Verify",
        "Client-Cert",
        "X-Our-Client",
        "X-Auth-User",
        "X_Forwarded_For",
        "X.Our_Client",
        "x.auth.user",
        "X-Tenant",
    ];

    /// What is left of all fields, from a trusted proxy and from anybody.
    fn left(text: &str, is_trusted: bool) -> Vec<String> {
        let mut fields = Fields::new();
        for name in ALL {
            fields.push_received(name.as_bytes(), b"x").expect("a field");
        }
        trust(text).clean(&mut fields, is_trusted);
        fields.iter().map(|field| String::from_utf8_lossy(field.name).into_owned()).collect()
    }

    #[test]
    fn one_field_is_believed_and_the_others_go_whoever_sends_them() {
        let rest = ["X-Our-Client", "X-Auth-User", "X.Our_Client", "x.auth.user", "X-Tenant"];
        let family = ["X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Port"];
        for (text, believed) in [
            ("[\"10.0.0.0/8\"]", &family[..]),
            ("{ from = [\"10.0.0.0/8\"] }", &family),
            ("{ from = [\"10.0.0.0/8\"], field = \"x-forwarded-for\" }", &family),
            ("{ from = [\"10.0.0.0/8\"], field = \"Forwarded\" }", &["Forwarded"]),
            ("{ from = [\"10.0.0.0/8\"], field = \"x-real-ip\" }", &["X-Real-IP"]),
            ("{ from = [\"10.0.0.0/8\"], field = \"cf-connecting-ip\" }", &["CF-Connecting-IP"]),
        ] {
            assert_eq!(left(text, true), [believed, &rest[..]].concat(), "{text}");
            assert_eq!(left(text, false), rest, "{text}");
        }
    }

    #[test]
    fn a_field_of_ones_own_is_believed_of_proxies_alone() {
        let text = "{ from = [\"10.0.0.0/8\"], field = \"x-our-client\", also = [\"X-Auth-*\", \
                    \"X-Client-Cert-*\", \"X-Forwarded-User\"] }";
        let believed =
            ["X-Forwarded-User", "X-Client-Cert-Verify", "X-Our-Client", "X-Auth-User", "X-Tenant"];
        assert_eq!(left(text, true), believed);
        assert_eq!(left(text, false), ["X-Tenant"]);
    }
}
