//! `trusted_proxies` of a listener.

use subak_message::Known;

use super::networks::networks;
use super::{Reader, View};
use crate::diagnostic::Diagnostic;
use crate::headers::{self, Direction};
use crate::model::{ProxyField, TrustedProxies};
use crate::problem::Problem;
use crate::tree::Value;
use crate::vocabulary::TRUSTED_PROXIES;

pub(super) fn read(reader: &mut Reader<'_>, view: &View<'_>) -> TrustedProxies {
    let Some(node) = view.node("trusted_proxies") else { return TrustedProxies::default() };
    if !matches!(node.value, Value::Table(_)) {
        let (networks, unix) = networks(reader, view.items("trusted_proxies"));
        return TrustedProxies { networks, unix, ..TrustedProxies::default() };
    }
    let view = View::of(node, &TRUSTED_PROXIES);
    let (networks, unix) = networks(reader, view.items("from"));
    if let Some(node) = view.node("from")
        && view.items("from").is_empty()
    {
        let diagnostic = Diagnostic::error(node.span, "no proxy would be believed");
        reader.push(diagnostic.label("expected networks such as \"10.0.0.0/8\""));
    }
    let named = view.node("field").and_then(|node| reader.text(node, field));
    let name = |text: &str| headers::name(text, Direction::Request);
    let also = view.items("also").iter().filter_map(|node| reader.text(node, name)).collect();
    TrustedProxies { networks, unix, field: named.unwrap_or_default(), also }
}

/// A field that names a client by its address.
fn field(text: &str) -> Result<ProxyField, Problem> {
    let name = headers::name(text, Direction::Request)?;
    match Known::classify(text.as_bytes()) {
        Known::XForwardedFor => Ok(ProxyField::XForwardedFor),
        Known::Forwarded => Ok(ProxyField::Forwarded),
        Known::XRealIp | Known::Other => Ok(ProxyField::Address(name)),
        _ => Err(Problem::expected(
            format!("{text} does not hold the address of a client"),
            "expected \"x-forwarded-for\", \"forwarded\", \"x-real-ip\" or a field of your own",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::{ProxyField, field};

    #[test]
    fn fields_hold_an_address_or_a_list_of_them() {
        assert_eq!(field("X-Forwarded-For"), Ok(ProxyField::XForwardedFor));
        assert_eq!(field("forwarded"), Ok(ProxyField::Forwarded));
        for one in ["x-real-ip", "CF-Connecting-IP", "X-Our-Client"] {
            assert_eq!(field(one).map(|field| field.name().to_owned()), Ok(one.to_owned()));
        }
        for none in
            ["X-Forwarded-Proto", "x_forwarded_for", "Cookie", "Host", "Connection", "a b", ""]
        {
            assert!(field(none).is_err(), "{none}");
        }
    }
}
