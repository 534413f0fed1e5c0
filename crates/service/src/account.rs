//! Who a process runs as: a user, its group, and the other groups the user belongs to.

use std::ffi::CString;
use std::fmt;

use nix::unistd::{Gid, Group, Uid, User, getegid, geteuid, getgrouplist};

/// A user and groups, found in the machine's own lists.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Account {
    pub(crate) name: String,
    pub(crate) uid: Uid,
    pub(crate) gid: Gid,
    /// All of them, `gid` too: what the group `ssl-cert` may read, a member may read.
    pub(crate) groups: Vec<Gid>,
}

impl fmt::Display for Account {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} (uid {}, gid {})", self.name, self.uid, self.gid)
    }
}

/// Why there is no such account.
#[derive(Debug)]
pub enum NoAccount {
    /// No user of this name.
    User(String),
    /// No group of this name.
    Group(String),
    /// A user by number that the machine does not know, so nobody says which group is its own.
    GroupUnknown(String),
    /// The lists cannot be read.
    Lists(String, std::io::Error),
}

impl fmt::Display for NoAccount {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoAccount::User(name) => write!(
                out,
                "there is no user {name} on this machine\n  make it with `useradd --system \
                 --shell /usr/sbin/nologin {name}`, or say another one as user = …"
            ),
            NoAccount::Group(name) => write!(
                out,
                "there is no group {name} on this machine\n  make it with `groupadd --system \
                 {name}`, or leave group = … out: then it is the user's own"
            ),
            NoAccount::GroupUnknown(user) => write!(
                out,
                "user {user} has no entry on this machine that names its group\n  say it as \
                 group = …"
            ),
            NoAccount::Lists(name, error) => {
                write!(out, "cannot look {name} up: {error}\n  is /etc/passwd readable?")
            }
        }
    }
}

impl std::error::Error for NoAccount {}

impl Account {
    /// The account of a user, by name or number; its group is the user's own unless another is given.
    ///
    /// # Errors
    /// [`NoAccount`].
    pub fn find(user: &str, group: Option<&str>) -> Result<Account, NoAccount> {
        let lists = |error: nix::Error| NoAccount::Lists(user.to_owned(), error.into());
        let named = User::from_name(user).map_err(lists)?;
        let entry = match (named, user.parse::<u32>()) {
            (Some(entry), _) => Some(entry),
            (None, Ok(number)) => User::from_uid(Uid::from_raw(number)).map_err(lists)?,
            (None, Err(_)) => return Err(NoAccount::User(user.to_owned())),
        };
        let uid = match (&entry, user.parse::<u32>()) {
            (Some(entry), _) => entry.uid,
            (None, Ok(number)) => Uid::from_raw(number),
            (None, Err(_)) => return Err(NoAccount::User(user.to_owned())),
        };
        let gid = match (group, &entry) {
            (Some(group), _) => find_group(group)?,
            (None, Some(entry)) => entry.gid,
            (None, None) => return Err(NoAccount::GroupUnknown(user.to_owned())),
        };
        let name = entry.map_or_else(|| user.to_owned(), |entry| entry.name);
        let groups = match CString::new(name.as_str()) {
            Ok(name) => getgrouplist(&name, gid).map_err(lists)?,
            Err(_) => vec![gid],
        };
        Ok(Account { name, uid, gid, groups })
    }

    /// The account this process runs as, by its effective ids.
    pub fn own() -> Account {
        let (uid, gid) = (geteuid(), getegid());
        let name = User::from_uid(uid).ok().flatten().map(|entry| entry.name);
        let name = name.unwrap_or_else(|| uid.to_string());
        Account { name, uid, gid, groups: vec![gid] }
    }

    /// The name of the user; its number where it has none.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The number of the user.
    pub fn uid(&self) -> u32 {
        self.uid.as_raw()
    }

    /// The number of the group.
    pub fn gid(&self) -> u32 {
        self.gid.as_raw()
    }

    /// Whether this process runs as this user and group already.
    pub fn is_own(&self) -> bool {
        geteuid() == self.uid && getegid() == self.gid
    }
}

fn find_group(group: &str) -> Result<Gid, NoAccount> {
    let found = Group::from_name(group);
    let found = found.map_err(|error| NoAccount::Lists(group.to_owned(), error.into()))?;
    match (found, group.parse::<u32>()) {
        (Some(entry), _) => Ok(entry.gid),
        (None, Ok(number)) => Ok(Gid::from_raw(number)),
        (None, Err(_)) => Err(NoAccount::Group(group.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::{Account, NoAccount};

    #[test]
    fn users_and_groups_are_found_by_name_and_by_number() {
        let root = Account::find("root", None).unwrap();
        assert_eq!((root.uid(), root.gid(), root.name()), (0, 0, "root"));
        assert_eq!(Account::find("0", None).unwrap(), root);
        let mixed = Account::find("root", Some("12345")).unwrap();
        assert_eq!((mixed.uid(), mixed.gid()), (0, 12345));
        assert!(mixed.groups.contains(&mixed.gid));
    }

    #[test]
    fn who_is_not_there_is_named() {
        let said = |user, group| Account::find(user, group).unwrap_err();
        assert!(
            matches!(said("no-such-user", None), NoAccount::User(name) if name == "no-such-user")
        );
        assert!(matches!(said("root", Some("no-such-group")), NoAccount::Group(_)));
        // A number without an entry needs a group beside it.
        assert!(matches!(said("4123456", None), NoAccount::GroupUnknown(_)));
        let bare = Account::find("4123456", Some("4123457")).unwrap();
        assert_eq!((bare.uid(), bare.gid(), bare.name()), (4_123_456, 4_123_457, "4123456"));
    }

    #[test]
    fn the_own_account_is_ones_own() {
        assert!(Account::own().is_own());
        assert!(!Account::find("4123456", Some("4123457")).unwrap().is_own());
    }
}
