//! Which pool and which endpoint are meant: a pool may be left out, an endpoint's name be shortened.

use clap::Args;
use serde_json::Value;

use super::{Context, Failure};
use crate::ask::{Answer, AskError};
use crate::status::{BRIEF, Endpoint, Pool, Status, endpoint_path, pool_path};

/// An endpoint as the command line names it.
#[derive(Args, Clone, Debug)]
pub(crate) struct Named {
    /// The pool, which may be left out where there is only one, and the endpoint
    #[arg(required = true, num_args = 1..=2, value_names = ["POOL", "ENDPOINT"])]
    words: Vec<String>,
}

/// An endpoint that is there.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) pool: String,
    pub(crate) endpoint: String,
}

impl Found {
    pub(crate) fn path(&self) -> String {
        endpoint_path(&self.pool, &self.endpoint)
    }
}

/// The pool that is meant, and the last word.
pub(crate) fn pool_and_word(
    context: &Context,
    words: &[String],
) -> Result<(String, String), Failure> {
    match words {
        [pool, word] => Ok((pool.clone(), word.clone())),
        [word] => Ok((only_pool(context)?, word.clone())),
        _ => Err(Failure::Wrong("expected a pool and one word more".to_owned())),
    }
}

/// The pool, where there is one.
fn only_pool(context: &Context) -> Result<String, Failure> {
    let status: Status = context.client.get(BRIEF)?.json()?;
    match &status.pools[..] {
        [only] => Ok(only.name.clone()),
        [] => Err(Failure::Wrong("there is no pool".to_owned())),
        several => {
            let names = several.iter().take(10).map(|pool| pool.name.as_str()).collect::<Vec<_>>();
            let more = if several.len() > names.len() { ", …" } else { "" };
            let names = names.join(", ");
            Err(Failure::Wrong(format!("there are several pools, name one: {names}{more}")))
        }
    }
}

/// The endpoint that is meant, and what is told of it.
pub(crate) fn find(context: &Context, named: &Named) -> Result<(Found, Answer), Failure> {
    let (pool, endpoint) = pool_and_word(context, &named.words)?;
    let found = Found { pool, endpoint };
    match context.client.get(&found.path()) {
        Ok(answer) => Ok((found, answer)),
        Err(error @ AskError::Refused { status: 404, .. }) => {
            let Some(full) = longer_name(context, &found) else { return Err(error.into()) };
            let found = Found { endpoint: full, ..found };
            eprintln!("({} of pool {})", found.endpoint, found.pool);
            let answer = context.client.get(&found.path())?;
            Ok((found, answer))
        }
        Err(error) => Err(error.into()),
    }
}

/// The one name of the pool that begins like this.
fn longer_name(context: &Context, found: &Found) -> Option<String> {
    let endpoints = endpoints_of(context, &found.pool).ok()?;
    one_that_begins(&endpoints, &found.endpoint).map(|endpoint| endpoint.name.clone())
}

fn one_that_begins<'a>(endpoints: &'a [Endpoint], beginning: &str) -> Option<&'a Endpoint> {
    if beginning.is_empty() {
        return None;
    }
    let mut matching = endpoints.iter().filter(|endpoint| endpoint.name.starts_with(beginning));
    matching.next().filter(|_| matching.next().is_none())
}

/// The endpoints of a pool.
pub(super) fn endpoints_of(context: &Context, pool: &str) -> Result<Vec<Endpoint>, Failure> {
    let pool: Pool = serde_json::from_value(told_of(context, pool)?)
        .map_err(|error| AskError::NotUnderstood(error.to_string()))?;
    Ok(pool.listed().map(<[Endpoint]>::to_vec).unwrap_or_default())
}

/// What is told of a pool and its endpoints. A Subak that tells of single pools no more than of all
/// is asked for all.
pub(crate) fn told_of(context: &Context, pool: &str) -> Result<Value, Failure> {
    let refused = match context.client.get(&pool_path(pool)) {
        Ok(answer) => return Ok(answer.json()?),
        Err(error @ AskError::Refused { status: 404, .. }) => error,
        Err(error) => return Err(error.into()),
    };
    let mut status: Value = context.client.get("/v1/status")?.json()?;
    let mut pools = status["pools"].as_array_mut().into_iter().flatten();
    let found = pools.find(|told| told["name"] == pool).map(Value::take);
    found.ok_or_else(|| refused.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beginning_counts_when_one_name_alone_has_it() {
        let named = |name: &str| Endpoint { name: name.to_owned(), ..Endpoint::default() };
        let endpoints = ["10.0.0.2:80", "10.0.0.21:80", "unix:/run/app.sock"].map(named);
        let found = |beginning| one_that_begins(&endpoints, beginning).map(|found| &*found.name);
        assert_eq!(found("unix"), Some("unix:/run/app.sock"));
        assert_eq!(found("10.0.0.2:"), Some("10.0.0.2:80"));
        assert_eq!((found("10.0.0.2"), found(""), found("11")), (None, None, None));
    }
}
