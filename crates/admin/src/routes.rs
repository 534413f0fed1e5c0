//! What each route answers.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, Uri};

use crate::answer::{Answer, Layout, Refusal, json_answer, json_in, text_answer};
use crate::change::Change;
use crate::command::{Command, NotChanged, Overview};
use crate::resource::Resource;
use crate::server::Shared;
use crate::status::Detail;
use crate::wish::{Done, NotDone, Wish};
use crate::{accept, explain, limits, metrics, request, shown, status};

const PLAIN: &str = "text/plain; charset=utf-8";
const OPENAPI: &str = include_str!("../openapi.json");

/// Endpoints up to which the status is indented; people read no more of them.
const INDENTED: usize = 1000;

/// A request as far as it matters here.
pub(crate) struct Asked<'a> {
    pub(crate) resource: Resource,
    pub(crate) method: &'a Method,
    pub(crate) target: &'a Uri,
    pub(crate) fields: &'a HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) by: &'a Arc<str>,
}

/// The answer. The resource takes the method.
pub(crate) async fn answer(asked: Asked<'_>, shared: &Shared) -> Result<Answer, Refusal> {
    let method = if *asked.method == Method::HEAD { &Method::GET } else { asked.method };
    match (asked.resource.route.path, method.as_str()) {
        ("/v1/status", _) => {
            let detail = request::detail(asked.target)?;
            let write = move |overview: &Overview| {
                let is_long = detail == Detail::Whole && overview.endpoints() > INDENTED;
                let layout = if is_long { Layout::Compact } else { Layout::Indented };
                json_in(layout, StatusCode::OK, &status::of_all(overview, detail))
            };
            shared.shown(None, write).await
        }
        ("/metrics", _) => {
            let dialect = accept::dialect(asked.fields);
            let write = move |overview: &Overview| {
                let text = metrics::text(overview, dialect);
                text_answer(StatusCode::OK, text, dialect.content_type())
            };
            shared.shown(None, write).await
        }
        ("/v1/pools", _) => {
            let write = |overview: &Overview| json_answer(StatusCode::OK, &shown::pools(overview));
            shared.shown(None, write).await
        }
        ("/v1/pools/{pool}", "GET") => asked.pool(shared).await,
        ("/v1/pools/{pool}", _) => {
            let picks = request::picks(&asked.body)?;
            let pool = asked.resource.first().to_owned();
            asked.wish(shared, Wish::PickLog { pool, picks }).await?;
            asked.pool(shared).await
        }
        ("/v1/pools/{pool}/endpoints", _) => {
            let endpoint = request::endpoint(&asked.body)?;
            shared.gate.check_endpoint(&endpoint)?;
            let pool = asked.resource.first().to_owned();
            let address = endpoint.split_ascii_whitespace().next().unwrap_or_default().to_owned();
            asked.wish(shared, Wish::Add { pool: pool.clone(), endpoint }).await?;
            asked.endpoint(shared, (pool, address), None, StatusCode::CREATED).await
        }
        ("/v1/pools/{pool}/endpoints/{endpoint}", "DELETE") => {
            let (pool, endpoint) = asked.named();
            let done = asked.wish(shared, Wish::Remove { pool, endpoint }).await?;
            shared.written(move || json_answer(StatusCode::OK, &shown::done(&done))).await
        }
        ("/v1/pools/{pool}/endpoints/{endpoint}", method) => {
            let change = match method {
                "PUT" => Some(Change::parse(&asked.body, true)?),
                "PATCH" => Some(Change::parse(&asked.body, false)?),
                _ => None,
            };
            asked.endpoint(shared, asked.named(), change, StatusCode::OK).await
        }
        ("/v1/config", _) => {
            let told = shared.ask(|reply| Command::Config { reply }).await?;
            shared.written(move || json_answer(StatusCode::OK, &shown::config(&told))).await
        }
        ("/v1/config/text", _) => {
            let told = shared.ask(|reply| Command::Config { reply }).await?;
            let write = move || text_answer(StatusCode::OK, shown::text(&told.version), PLAIN);
            shared.written(write).await
        }
        ("/v1/config/diff", _) => {
            let told = shared.ask(|reply| Command::Config { reply }).await?;
            shared.written(move || text_answer(StatusCode::OK, shown::diff(&told), PLAIN)).await
        }
        ("/v1/config/reload", _) => asked.change(shared, Wish::Reload).await,
        ("/v1/config/changes", _) => asked.change(shared, Wish::Clear).await,
        ("/v1/config/rollback", _) => {
            let to = request::rollback(&asked.body)?;
            asked.change(shared, Wish::Rollback { to }).await
        }
        ("/v1/config/save", _) => {
            request::nothing(&asked.body)?;
            let done = asked.wish(shared, Wish::Save).await?;
            Ok(json_answer(StatusCode::OK, &shown::saved(&done)))
        }
        ("/v1/config/history", _) => {
            let past = shared.ask(|reply| Command::History { reply }).await?;
            Ok(json_answer(StatusCode::OK, &shown::history(&past)))
        }
        ("/v1/config/history/{generation}", _) => {
            let past = shared.ask(|reply| Command::History { reply }).await?;
            let word = asked.resource.first().to_owned();
            let write = move || {
                let generation = word.parse().ok();
                let one = generation.and_then(|one| shown::one_of_history(&past, one));
                match one {
                    Some(one) => json_answer(StatusCode::OK, &one),
                    None => {
                        let kept: Vec<String> =
                            past.iter().map(|one| one.generation.to_string()).collect();
                        let error = format!("generation {word} is not kept");
                        let hint = format!("there are {}", kept.join(", "));
                        Refusal::new(StatusCode::NOT_FOUND, error, hint).into_answer()
                    }
                }
            };
            shared.written(write).await
        }
        ("/v1/limits", _) => shared.shown(None, limits::all).await,
        ("/v1/limits/{limit}/keys/{key}", _) => {
            request::nothing(&asked.body)?;
            let (limit, key) = asked.named();
            let by = asked.by.clone();
            let clear = move |overview: &Overview| limits::clear(overview, (&limit, &key), &by);
            shared.shown(None, clear).await
        }
        ("/v1/events", _) => {
            let after = request::after(asked.target)?;
            let (next, events) = shared.ask(|reply| Command::Events { after, reply }).await?;
            shared.written(move || json_answer(StatusCode::OK, &shown::events(next, &events))).await
        }
        ("/v1/explain", _) => {
            let question = explain::question(&asked.body)?;
            let told = shared.ask(|reply| Command::Explain { question, reply }).await?;
            let told = told.map_err(explain::refusal)?;
            shared.written(move || json_answer(StatusCode::OK, &told)).await
        }
        ("/v1/picks", _) => {
            let search = explain::search(asked.target.query().unwrap_or_default())?;
            let pool = search.pool.clone().unwrap_or_default();
            let told = shared.ask(|reply| Command::Picks { search, reply }).await?;
            let logs = told.map_err(|not| not_found(&not, &pool, ""))?;
            shared.written(move || json_answer(StatusCode::OK, &logs.told())).await
        }
        ("/v1/openapi.json", _) => {
            Ok(text_answer(StatusCode::OK, OPENAPI.to_owned(), "application/json"))
        }
        (path, _) => {
            let error = format!("nothing answers for {path}");
            let hint = "that is a fault of Subak's";
            Err(Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, error, hint))
        }
    }
}

impl Asked<'_> {
    async fn look(&self, shared: &Shared, pool: Option<String>) -> Result<Overview, Refusal> {
        shared.ask(|reply| Command::Look { pool, reply }).await
    }

    fn named(&self) -> (String, String) {
        (self.resource.first().to_owned(), self.resource.second().to_owned())
    }

    async fn pool(&self, shared: &Shared) -> Result<Answer, Refusal> {
        let name = self.resource.first().to_owned();
        let overview = self.look(shared, Some(name.clone())).await?;
        if overview.pools.is_empty() {
            let known = self.look(shared, None).await?.pools;
            let known = known.into_iter().map(|pool| pool.status.name).collect();
            return Err(not_found(&NotChanged::NoPool { known }, &name, ""));
        }
        let write = move || match status::of_pools(&overview, Detail::Whole).pop() {
            Some(pool) => json_answer(StatusCode::OK, &pool),
            None => {
                Refusal::new(StatusCode::NOT_FOUND, "the pool has gone", "ask again").into_answer()
            }
        };
        shared.written(write).await
    }

    async fn endpoint(
        &self,
        shared: &Shared,
        (pool, endpoint): (String, String),
        change: Option<Change>,
        status: StatusCode,
    ) -> Result<Answer, Refusal> {
        let (in_pool, named) = (pool.clone(), endpoint.clone());
        let by = self.by.clone();
        let command = |reply| Command::Endpoint { pool, endpoint, change, by, reply };
        let told = shared.ask(command).await?;
        let told = told.map_err(|not| not_found(&not, &in_pool, &named))?;
        let shown = status::of_endpoint(&told.status, told.note, told.weighed.as_ref(), told.now);
        Ok(json_answer(status, &shown))
    }

    /// Changes what is in force, and tells how.
    async fn change(&self, shared: &Shared, wish: Wish) -> Result<Answer, Refusal> {
        if !matches!(wish, Wish::Rollback { .. }) {
            request::nothing(&self.body)?;
        }
        let done = self.wish(shared, wish).await?;
        shared.written(move || json_answer(StatusCode::OK, &shown::done(&done))).await
    }

    async fn wish(&self, shared: &Shared, wish: Wish) -> Result<Done, Refusal> {
        let by = self.by.clone();
        let done = shared.ask(|reply| Command::Wish { wish, by, reply }).await?;
        done.map_err(|not| self.refused(not))
    }

    fn refused(&self, not: NotDone) -> Refusal {
        let (pool, endpoint) = (self.resource.first(), self.resource.second());
        match not {
            NotDone::NoPool { known } => not_found(&NotChanged::NoPool { known }, pool, endpoint),
            NotDone::NoEndpoint { known } => {
                not_found(&NotChanged::NoEndpoint { known }, pool, endpoint)
            }
            NotDone::Conflict { error, hint } => Refusal::new(StatusCode::CONFLICT, error, hint),
            NotDone::Wrong { error, diagnostics } => {
                let hint = "each of the diagnostics says where and what to do";
                let refusal = Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, error, hint);
                refusal.with_diagnostics(&diagnostics)
            }
            NotDone::Failed { error, hint } => {
                Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, error, hint)
            }
        }
    }
}

fn not_found(not: &NotChanged, pool: &str, endpoint: &str) -> Refusal {
    let (error, word, known) = match not {
        NotChanged::NoPool { known } => (format!("there is no pool {pool:?}"), pool, known),
        NotChanged::NoEndpoint { known } => {
            (format!("pool {pool:?} has no endpoint {endpoint:?}"), endpoint, known)
        }
    };
    let hint = match subak_config::nearest(word, known.iter().map(String::as_str)) {
        Some(near) => format!("did you mean {near:?}?"),
        None if known.is_empty() => "there is none".to_owned(),
        None => {
            let some: Vec<&str> = known.iter().take(10).map(String::as_str).collect();
            let more = if known.len() > some.len() { ", …" } else { "" };
            format!("there are {}{more}", some.join(", "))
        }
    };
    Refusal::new(StatusCode::NOT_FOUND, error, hint)
}
