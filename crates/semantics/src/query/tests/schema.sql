CREATE TABLE t (id integer PRIMARY KEY, a integer, b bigint, c text, d numeric(10,2), f double precision, r real, s smallint, v varchar(10), p char(3), day date, at timestamp, tz timestamptz, clock time, flag boolean, bin bytea, u uuid);
CREATE TABLE x (id integer, a integer, k integer, n bigint, m numeric(12,3), w text);
CREATE TABLE y (id bigint, k integer, z text, PRIMARY KEY (id, k));
CREATE TABLE e (name text, boss text, pay integer);
