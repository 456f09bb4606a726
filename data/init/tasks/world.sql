-- Each session gets a copy of this world of its own. In it today is 2026-06-15.
create table members (
  member_id text primary key,
  name text not null
);
create table loans (
  loan_id text primary key,
  member_id text not null references members,
  title text not null,
  due_on text not null,
  renewals integer not null,
  is_reserved integer not null
);
insert into members values ('M1', 'Ada Krol'), ('M2', 'Ben Osei');
insert into loans values
  ('L1', 'M1', 'The Sea Atlas', '2026-06-20', 0, 0),
  ('L2', 'M1', 'Bread at Home', '2026-06-18', 1, 1),
  ('L3', 'M2', 'Knots', '2026-06-30', 2, 0);
