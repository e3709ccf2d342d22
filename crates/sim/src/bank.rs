//! Transactions written in Rust: a bank with accounts and a journal, within and across partitions.

use albireo::{
    Abort, Col, Database, IndexRef, Procedure, ProcedureHandle, Route, ShortKey, SqlError, SqlState,
    TableHandle, TextCol, Transaction,
};
use albireo_base::Tid;

use crate::model::{Cell, Change, Lane, Row, State};
use crate::random::Random;

/// Accounts have numbers from 0 to this.
pub const LAST_ACCOUNT: i64 = 30;

/// One transaction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BankTransaction {
    /// A new account.
    Open { id: i64, owner: String, cents: i64 },
    /// An account ends; gives what was in it.
    Close { id: i64 },
    /// Money from one account to another, with a note in the journal; gives what is left.
    Transfer { from: i64, to: i64, cents: i64 },
    /// An account gets another owner.
    Rename { id: i64, owner: String },
    /// An account gets another number, with what it holds.
    Renumber { from: i64, to: i64 },
    /// The entries of an account leave the journal; gives how many.
    Forget { source: i64 },
    /// All accounts of the partition of `near` get a cent, each with an entry; gives how many.
    Interest { near: i64 },
    /// Gives what is in an account; changes nothing.
    Look { id: i64 },
    /// Looks at all partitions and changes nothing.
    LookAround,
}

impl BankTransaction {
    /// Any of them.
    pub fn draw(random: &mut Random) -> Self {
        let id = random.between(0, LAST_ACCOUNT);
        let other = random.between(0, LAST_ACCOUNT);
        match random.below(20) {
            0..5 => Self::Open { id, owner: random.text(300), cents: random.between(0, 1000) },
            5..6 => Self::Close { id },
            6..12 => Self::Transfer { from: id, to: other, cents: random.between(1, 300) },
            12..13 => Self::Rename { id, owner: random.text(2000) },
            13..15 => Self::Renumber { from: id, to: other },
            15..16 => Self::Forget { source: id },
            16..17 => Self::Interest { near: id },
            17..19 => Self::Look { id },
            _ => Self::LookAround,
        }
    }

    /// Where it runs, among so many partitions.
    pub fn lane(&self, partitions: u16) -> Lane {
        let of = |key: i64| Lane::One(key.rem_euclid(i64::from(partitions)) as u16);
        match *self {
            Self::Open { id, .. } | Self::Close { id } | Self::Rename { id, .. } | Self::Look { id } => {
                of(id)
            }
            Self::Forget { source } => of(source),
            Self::Interest { near } => of(near),
            Self::Transfer { from, to, .. } | Self::Renumber { from, to } => {
                if of(from) == of(to) {
                    of(from)
                } else {
                    Lane::All
                }
            }
            Self::LookAround => Lane::All,
        }
    }

    /// What it does and gives, or the error it ends with.
    ///
    /// # Errors
    /// The SQLSTATE.
    pub fn effect(&self, state: &State, partitions: u16) -> Result<(Vec<Change>, i64), SqlState> {
        let accounts = state.table("account");
        let journal = state.table("journal");
        let find = |id: i64| accounts.keyed(id).next().ok_or(SqlState::RAISE_EXCEPTION);
        let cents_of = |row: &Row| row[2].int().expect("cents are a number");
        match self {
            Self::Open { id, owner, cents } => match find(*id) {
                Ok(_) => Err(SqlState::UNIQUE_VIOLATION),
                Err(_) => Ok((vec![Change::Insert("account", account(*id, owner, *cents))], 0)),
            },
            Self::Close { id } => {
                let row = find(*id)?;
                Ok((vec![Change::Delete("account", row.clone())], cents_of(row)))
            }
            Self::Transfer { from, to, cents } => {
                let (source, target) = (find(*from)?, find(*to)?);
                let entry = Change::Insert("journal", entry(*from, *to, *cents));
                let left = cents_of(source) - cents;
                if from == to {
                    return Ok((vec![entry], left + cents));
                }
                if left < 0 {
                    return Err(SqlState::CHECK_VIOLATION);
                }
                let mut changes = replaced(target, 2, Cell::Int(cents_of(target) + cents));
                changes.extend(replaced(source, 2, Cell::Int(left)));
                changes.push(entry);
                Ok((changes, left))
            }
            Self::Rename { id, owner } => Ok((replaced(find(*id)?, 1, Cell::text(owner)), 0)),
            Self::Renumber { from, to } => {
                let row = find(*from)?;
                if from == to || find(*to).is_ok() {
                    return Err(SqlState::UNIQUE_VIOLATION);
                }
                Ok((replaced(row, 0, Cell::Int(*to)), 0))
            }
            Self::Forget { source } => {
                let gone: Vec<_> = journal.keyed(*source).cloned().collect();
                let count = gone.len() as i64;
                Ok((gone.into_iter().map(|row| Change::Delete("journal", row)).collect(), count))
            }
            Self::Interest { near } => {
                let here = |row: &&Row| {
                    let id = row[0].int().expect("an account has a number");
                    (id - near).rem_euclid(i64::from(partitions)) == 0
                };
                let rows: Vec<_> = accounts.rows().filter(here).collect();
                let changes = rows.iter().flat_map(|row| {
                    let id = row[0].int().expect("an account has a number");
                    let mut changes = replaced(row, 2, Cell::Int(cents_of(row) + 1));
                    changes.push(Change::Insert("journal", entry(id, -1, 1)));
                    changes
                });
                Ok((changes.collect(), rows.len() as i64))
            }
            Self::Look { id } => Ok((vec![], find(*id).map_or(-1, cents_of))),
            Self::LookAround => Ok((vec![], 0)),
        }
    }
}

fn account(id: i64, owner: &str, cents: i64) -> Row {
    vec![Cell::Int(id), Cell::text(owner), Cell::Int(cents)]
}

fn entry(source: i64, target: i64, cents: i64) -> Row {
    let target = if target < 0 { Cell::Null } else { Cell::Int(target) };
    vec![Cell::Int(source), target, Cell::Int(cents)]
}

fn replaced(row: &Row, column: usize, value: Cell) -> Vec<Change> {
    let mut next = row.clone();
    next[column] = value;
    vec![Change::Delete("account", row.clone()), Change::Insert("account", next)]
}

/// The procedure that does all of it, made for a database.
pub struct Bank {
    account: TableHandle,
    by_id: IndexRef,
    id: Col<i32>,
    owner: TextCol,
    cents: Col<i64>,
    journal: TableHandle,
    source: Col<i32>,
    target: Col<i32>,
    moved: Col<i64>,
}

impl Bank {
    /// Makes it for the tables there.
    ///
    /// # Errors
    /// They are not there, or are others.
    pub fn register(database: &Database) -> Result<ProcedureHandle<Self>, SqlError> {
        let (account, by_id, id, owner, cents) = database.with_table("account", |handle, table| {
            let (id, owner) = (table.column("id")?, table.text_column("owner")?);
            Ok((handle, table.index("account_pkey")?, id, owner, table.column("cents")?))
        })?;
        let (journal, source, target, moved) = database.with_table("journal", |handle, table| {
            Ok((handle, table.column("source")?, table.column("target")?, table.column("cents")?))
        })?;
        let bank = Self { account, by_id, id, owner, cents, journal, source, target, moved };
        Ok(database.register_procedure(bank))
    }

    fn find(&self, tx: &Transaction, id: i64) -> Result<Tid, Abort> {
        let table = tx.table_at(tx.site_of(id)?, self.account);
        let row = table.find(self.by_id, ShortKey::new().i32(id as i32));
        row.ok_or_else(|| Abort::raise(SqlState::RAISE_EXCEPTION, "no such account"))
    }

    fn open(&self, tx: &mut Transaction, id: i64, owner: &str, cents: i64) -> Result<(), Abort> {
        let site = tx.site_of(id)?;
        let mut row = tx.insert_at(site, self.account)?;
        row.set(self.id, id as i32).set(self.cents, cents).set_text(self.owner, owner)?;
        row.finish()?;
        Ok(())
    }

    fn add(&self, tx: &mut Transaction, id: i64, cents: i64) -> Result<i64, Abort> {
        let (site, row) = (tx.site_of(id)?, self.find(tx, id)?);
        tx.update_at(site, self.account, row, |row| row.modify(self.cents, |old| old + cents))
    }

    fn note(&self, tx: &mut Transaction, from: i64, to: i64, cents: i64) -> Result<(), Abort> {
        let site = tx.site_of(from)?;
        let mut row = tx.insert_at(site, self.journal)?;
        row.set(self.source, from as i32).set(self.moved, cents);
        row.set_opt(self.target, (to >= 0).then_some(to as i32));
        row.finish()?;
        Ok(())
    }

    /// The accounts of the partition at home.
    fn accounts(&self, tx: &Transaction) -> Vec<i64> {
        let table = tx.table(self.account);
        table.scan_from(Tid(0)).map(|row| table.get(row, self.id).into()).collect()
    }

    fn forget(&self, tx: &mut Transaction, source: i64) -> Result<i64, Abort> {
        let table = tx.table(self.journal);
        let rows = table.scan_from(Tid(0)).filter(|&row| i64::from(table.get(row, self.source)) == source);
        let rows: Vec<_> = rows.collect();
        rows.iter().try_for_each(|&row| tx.delete(self.journal, row))?;
        Ok(rows.len() as i64)
    }

    fn renumber(&self, tx: &mut Transaction, from: i64, to: i64) -> Result<(), Abort> {
        let (site, row) = (tx.site_of(from)?, self.find(tx, from)?);
        let table = tx.table_at(site, self.account);
        let (owner, cents) = (table.text(row, self.owner).into_owned(), table.get(row, self.cents));
        // In this order, so that a number that is taken rolls something back.
        let taken = self.find(tx, to).is_ok();
        tx.delete_at(site, self.account, row)?;
        self.open(tx, to, &owner, cents)?;
        match taken {
            true => Err(Abort::raise(SqlState::UNIQUE_VIOLATION, "the number is taken")),
            false => Ok(()),
        }
    }
}

impl Procedure for Bank {
    type Args = BankTransaction;
    type Output = i64;

    fn name(&self) -> &str {
        "bank"
    }

    fn route(&self, work: &BankTransaction) -> Route {
        match *work {
            BankTransaction::Open { id, .. }
            | BankTransaction::Close { id }
            | BankTransaction::Rename { id, .. }
            | BankTransaction::Look { id } => Route::Key(id),
            // The other side may be elsewhere: then it runs again, over all.
            BankTransaction::Transfer { from, .. } | BankTransaction::Renumber { from, .. } => {
                Route::Key(from)
            }
            BankTransaction::Forget { source } => Route::Key(source),
            BankTransaction::Interest { near } => Route::Key(near),
            BankTransaction::LookAround => Route::Crossing,
        }
    }

    fn run(&self, tx: &mut Transaction, work: &BankTransaction) -> Result<i64, Abort> {
        match work {
            BankTransaction::Open { id, owner, cents } => self.open(tx, *id, owner, *cents).map(|()| 0),
            BankTransaction::Close { id } => {
                let row = self.find(tx, *id)?;
                let cents = tx.table(self.account).get(row, self.cents);
                tx.delete(self.account, row).map(|()| cents)
            }
            &BankTransaction::Transfer { from, to, cents } => {
                self.find(tx, from)?;
                self.add(tx, to, cents)?;
                let left = self.add(tx, from, -cents)?;
                self.note(tx, from, to, cents)?;
                Ok(left)
            }
            BankTransaction::Rename { id, owner } => {
                let row = self.find(tx, *id)?;
                tx.update(self.account, row, |row| row.set_text(self.owner, owner)).map(|_| 0)
            }
            &BankTransaction::Renumber { from, to } => self.renumber(tx, from, to).map(|()| 0),
            BankTransaction::Forget { source } => self.forget(tx, *source),
            BankTransaction::Interest { .. } => {
                let accounts = self.accounts(tx);
                for &id in &accounts {
                    self.add(tx, id, 1)?;
                    self.note(tx, id, -1, 1)?;
                }
                Ok(accounts.len() as i64)
            }
            BankTransaction::Look { id } => {
                let row = self.find(tx, *id);
                Ok(row.map_or(-1, |row| tx.table(self.account).get(row, self.cents)))
            }
            BankTransaction::LookAround => Ok(0),
        }
    }
}
