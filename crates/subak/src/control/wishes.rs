//! What operators want changed of the configuration in force: endpoints, reloads, earlier versions.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::SystemTime;

use subak_admin::{ConfigTold, Done, NotDone, Wish};
use subak_config::{Added, Layer, MAX_CHANGED_ENDPOINTS, Made, Pool};

use super::{Cause, Control, Desired, NotInForce};

impl Control {
    /// Does it, or changes nothing.
    pub(super) fn fulfil(&mut self, wish: Wish, by: &Arc<str>) -> Result<Done, NotDone> {
        let before = self.desired.version();
        let done = |control: &Control| Done {
            generation: control.generation(),
            versions: (before, control.desired.version()),
            saved: Vec::new(),
            left: 0,
            masked: Vec::new(),
        };
        match wish {
            Wish::Add { pool, endpoint } => self.add(&pool, &endpoint, by)?,
            Wish::Remove { pool, endpoint } => self.remove(&pool, &endpoint, by)?,
            Wish::PickLog { pool, picks } => self.keep_picks(&pool, picks, by)?,
            Wish::Reload => {
                let masked = self.reload(by).map_err(refused)?;
                tracing::info!(by = %by, generation = self.generation(), "configuration reloaded");
                return Ok(Done { masked, ..done(self) });
            }
            Wish::Save => return self.save(by, done),
            Wish::Clear => {
                let desired = Desired { layer: Arc::default(), ..self.desired.clone() };
                let summary = "everything set by API is taken back".to_owned();
                self.change_to(desired, ("api", by), summary)?;
            }
            Wish::Rollback { to } => self.roll_back(to, by)?,
        }
        Ok(done(self))
    }

    fn add(&mut self, pool: &str, text: &str, by: &Arc<str>) -> Result<(), NotDone> {
        let pool = self.pool_in_force(pool)?;
        let text = text.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
        let endpoint = subak_config::joining(&text, pool).map_err(|diagnostics| {
            let diagnostics = subak_config::to_json(&diagnostics, &text, "endpoint".as_ref());
            NotDone::Wrong { error: format!("{text:?} cannot be added"), diagnostics }
        })?;
        let address = endpoint.address.clone();
        if pool.endpoints.iter().any(|one| one.address == address) {
            let error = format!("pool {:?} has the endpoint {address} already", &*pool.name);
            let hint = "change its weight or state by PATCH, or remove it first".to_owned();
            return Err(NotDone::Conflict { error, hint });
        }
        let layer = self.desired.layer.pool(&pool.name);
        if layer.is_some_and(|layer| layer.added.len() >= MAX_CHANGED_ENDPOINTS) {
            let error = format!("{MAX_CHANGED_ENDPOINTS} endpoints were added to it by API");
            let hint = "save them, or put them into the file".to_owned();
            return Err(NotDone::Conflict { error, hint });
        }
        let summary = format!("endpoint {text} added to pool {}", pool.name);
        let name = pool.name.clone();
        let below = self.desired.below();
        let as_written = below.pool(&name).and_then(|pool| {
            pool.endpoints.iter().find(|one| one.address == address && **one == endpoint)
        });
        let is_back = as_written.is_some();
        let made = Made {
            value: Added { text: text.as_str().into(), endpoint },
            by: by.clone(),
            at: SystemTime::now(),
        };
        let mut desired = self.desired.clone();
        Arc::make_mut(&mut desired.layer).change(&name, |layer| match is_back {
            // Just as the file has it: then it is the file's again.
            true => _ = layer.removed.remove(&address),
            false => layer.add(made),
        });
        self.change_to(desired, ("api", by), summary)
    }

    fn remove(&mut self, pool: &str, endpoint: &str, by: &Arc<str>) -> Result<(), NotDone> {
        let name = self.pool_in_force(pool)?.name.clone();
        let known = || {
            let pool = self.snapshot.pools.get(&*name)?;
            let index = pool.find(endpoint)?;
            Some((
                pool.endpoint(index)?.address().clone(),
                pool.spec().endpoints[index].name.clone(),
            ))
        };
        let Some((address, text)) = known() else {
            let pool = self.snapshot.pools.get(&*name);
            let names = pool.map(|pool| pool.spec().endpoints.iter().map(|one| one.name.clone()));
            return Err(NotDone::NoEndpoint { known: names.into_iter().flatten().collect() });
        };
        let below = self.desired.below();
        let is_below = below
            .pool(&name)
            .is_some_and(|pool| pool.endpoints.iter().any(|one| one.address == address));
        let made = Made { value: (), by: by.clone(), at: SystemTime::now() };
        let mut desired = self.desired.clone();
        Arc::make_mut(&mut desired.layer)
            .change(&name, |layer| layer.remove(&address, is_below, made));
        let summary = format!("endpoint {text} removed from pool {name}");
        self.change_to(desired, ("api", by), summary)
    }

    fn keep_picks(
        &mut self,
        pool: &str,
        picks: Option<Option<NonZeroUsize>>,
        by: &Arc<str>,
    ) -> Result<(), NotDone> {
        let name = self.pool_in_force(pool)?.name.clone();
        let made = |value| Made { value, by: by.clone(), at: SystemTime::now() };
        let mut desired = self.desired.clone();
        Arc::make_mut(&mut desired.layer).change(&name, |layer| layer.pick_log = picks.map(made));
        let summary = match picks {
            Some(Some(picks)) => format!("pool {name} keeps {picks} picks"),
            Some(None) => format!("pool {name} keeps no picks"),
            None => format!("pool {name} keeps picks as the file says"),
        };
        self.change_to(desired, ("api", by), summary)
    }

    fn roll_back(&mut self, to: Option<u64>, by: &Arc<str>) -> Result<(), NotDone> {
        let Some((generation, desired)) = self.history.rollback(to, &self.desired) else {
            let kept: Vec<String> =
                self.history.generations().iter().map(ToString::to_string).collect();
            let (error, hint) = match to {
                Some(to) => (
                    format!("generation {to} is not kept"),
                    format!("there are {}", kept.join(", ")),
                ),
                None => (
                    "there is no configuration before this one".to_owned(),
                    "nothing has been changed since it was started".to_owned(),
                ),
            };
            return Err(NotDone::Conflict { error, hint });
        };
        let summary = format!("rolled back to generation {generation}");
        self.change_to(desired, ("rollback", by), summary)
    }

    /// Puts it in force and into the history.
    pub(super) fn change_to(
        &mut self,
        desired: Desired,
        (name, by): (&'static str, &Arc<str>),
        summary: String,
    ) -> Result<(), NotDone> {
        self.put_in_force(desired).map_err(refused)?;
        self.note(Cause { name, by: by.clone(), summary: summary.into() }, Layer::default());
        Ok(())
    }

    /// Another configuration has come in force.
    pub(super) fn note(&mut self, cause: Cause, saved: Layer) {
        let Cause { by, summary, .. } = &cause;
        let generation = self.generation();
        tracing::info!(by = %by, generation, "by the API: {summary}");
        self.events.keep(
            "info",
            None,
            None,
            format!("{summary}, by {by}: generation {generation}"),
        );
        self.history.add(generation, cause, &self.desired, saved);
    }

    /// What is in force, and where it comes from.
    pub(super) fn told_of_config(&self) -> ConfigTold {
        ConfigTold {
            generation: self.generation(),
            version: self.desired.version(),
            on_disk: self.on_disk.files.clone(),
            differs_from_file: self.differs_from_file(),
        }
    }

    /// Whether the files, as they were last read, say something else than what is in force.
    pub(super) fn differs_from_file(&self) -> bool {
        !self.desired.layer.is_empty() || self.desired.loaded.files != self.on_disk.files
    }

    fn pool_in_force(&self, name: &str) -> Result<&Pool, NotDone> {
        self.config.pool(name).ok_or_else(|| NotDone::NoPool {
            known: self.config.pools.iter().map(|pool| pool.name.to_string()).collect(),
        })
    }
}

pub(super) fn refused(reason: NotInForce) -> NotDone {
    let error = "the configuration cannot be put in force; nothing has changed".to_owned();
    match reason {
        NotInForce::Wrong(findings) => NotDone::Wrong { error, diagnostics: findings.json },
        other => {
            NotDone::Failed { error: format!("{error}: {other}"), hint: other.remedy().into() }
        }
    }
}
