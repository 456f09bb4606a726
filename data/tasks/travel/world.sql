-- A small travel desk. In its world today is 2026-06-15.
create table travellers (
  traveller_id text primary key,
  name text not null,
  email text not null,
  level text not null check (level in ('standard', 'silver', 'gold'))
);
create table flights (
  flight_id text primary key,
  origin text not null,
  destination text not null,
  departs_on text not null,
  departs_at text not null,
  flight_status text not null check (flight_status in ('scheduled', 'flown', 'cancelled')),
  delay_minutes integer not null
);
create table fares (
  flight_id text not null references flights,
  fare text not null check (fare in ('basic', 'flex', 'business')),
  price real not null,
  seats_left integer not null,
  primary key (flight_id, fare)
);
create table hotels (
  hotel_id text primary key,
  name text not null,
  city text not null,
  price_per_night real not null,
  rooms_left integer not null
);
create table bookings (
  booking_id text primary key,
  traveller_id text not null references travellers,
  kind text not null check (kind in ('flight', 'hotel')),
  status text not null check (status in ('confirmed', 'used', 'cancelled')),
  booked_on text not null,
  paid real not null,
  flight_id text references flights,
  fare text,
  bags integer,
  changes_made integer,
  hotel_id text references hotels,
  check_in text,
  nights integer
);
create table refunds (
  refund_id integer primary key,
  booking_id text not null references bookings,
  amount real not null
);
create table credits (
  credit_id integer primary key,
  booking_id text not null references bookings,
  amount real not null,
  reason text not null
);
create table claims (
  claim_id integer primary key,
  booking_id text not null references bookings,
  kind text not null
);
-- One row a booking, with what is known of its flight or hotel.
create view booking_sheet as
select
  bookings.*,
  travellers.level,
  flights.origin,
  flights.destination,
  flights.departs_on,
  flights.departs_at,
  flights.flight_status,
  flights.delay_minutes,
  hotels.price_per_night
from bookings
join travellers using (traveller_id)
left join flights using (flight_id)
left join hotels using (hotel_id);

insert into travellers values
  ('T201', 'Nadia Brandt', 'nadia@brandt.example', 'standard'),
  ('T202', 'Owen Fraser', 'owen.fraser@mail.example', 'silver'),
  ('T203', 'Lucia Marini', 'lucia@marini.example', 'gold'),
  ('T204', 'Henrik Dahl', 'henrik.d@post.example', 'standard'),
  ('T205', 'Amara Diallo', 'amara@diallo.example', 'standard'),
  ('T206', 'Piotr Zielinski', 'piotr.z@mail.example', 'gold'),
  ('T207', 'Yuki Mori', 'yuki@mori.example', 'standard'),
  ('T208', 'Carmen Iglesias', 'carmen.i@post.example', 'silver'),
  ('T209', 'Elias Roth', 'elias@roth.example', 'standard'),
  ('T210', 'Sofia Almeida', 'sofia.a@mail.example', 'gold'),
  ('T211', 'Karim Belhaj', 'karim@belhaj.example', 'standard'),
  ('T212', 'Maeve Doyle', 'maeve.doyle@post.example', 'silver');
insert into flights values
  ('F301', 'Lisbon', 'Oslo', '2026-07-02', '07:40', 'scheduled', 0),
  ('F302', 'Lisbon', 'Oslo', '2026-07-02', '13:15', 'scheduled', 0),
  ('F303', 'Lisbon', 'Oslo', '2026-07-03', '09:05', 'scheduled', 0),
  ('F304', 'Oslo', 'Lisbon', '2026-07-09', '16:30', 'scheduled', 0),
  ('F305', 'Vienna', 'Porto', '2026-06-28', '06:55', 'scheduled', 0),
  ('F306', 'Vienna', 'Porto', '2026-06-29', '11:20', 'scheduled', 0),
  ('F307', 'Vienna', 'Porto', '2026-06-30', '18:10', 'scheduled', 0),
  ('F308', 'Dublin', 'Athens', '2026-07-11', '08:25', 'scheduled', 0),
  ('F309', 'Dublin', 'Athens', '2026-07-12', '12:45', 'scheduled', 0),
  ('F310', 'Prague', 'Nice', '2026-06-20', '10:10', 'scheduled', 0),
  ('F311', 'Prague', 'Nice', '2026-06-21', '15:50', 'scheduled', 0),
  ('F312', 'Warsaw', 'Malaga', '2026-06-10', '09:30', 'flown', 215),
  ('F313', 'Warsaw', 'Malaga', '2026-06-08', '09:30', 'flown', 95),
  ('F314', 'Turin', 'Bergen', '2026-06-18', '14:00', 'cancelled', 0),
  ('F315', 'Hamburg', 'Seville', '2026-06-11', '17:20', 'flown', 0),
  ('F316', 'Hamburg', 'Seville', '2026-07-15', '17:20', 'scheduled', 0);
insert into fares values
  ('F301', 'basic', 121.00, 4), ('F301', 'flex', 189.00, 6), ('F301', 'business', 420.00, 2),
  ('F302', 'basic', 99.00, 0), ('F302', 'flex', 164.00, 3), ('F302', 'business', 398.00, 1),
  ('F303', 'basic', 115.00, 9), ('F303', 'flex', 176.00, 7), ('F303', 'business', 405.00, 4),
  ('F304', 'basic', 109.00, 5), ('F304', 'flex', 170.00, 5), ('F304', 'business', 390.00, 2),
  ('F305', 'basic', 84.00, 8), ('F305', 'flex', 132.00, 5), ('F305', 'business', 310.00, 3),
  ('F306', 'basic', 92.00, 3), ('F306', 'flex', 141.00, 2), ('F306', 'business', 325.00, 0),
  ('F307', 'basic', 88.00, 6), ('F307', 'flex', 137.00, 4), ('F307', 'business', 318.00, 2),
  ('F308', 'basic', 150.00, 7), ('F308', 'flex', 214.00, 5), ('F308', 'business', 455.00, 2),
  ('F309', 'basic', 144.00, 6), ('F309', 'flex', 208.00, 4), ('F309', 'business', 439.00, 1),
  ('F310', 'basic', 76.00, 2), ('F310', 'flex', 118.00, 1), ('F310', 'business', 280.00, 2),
  ('F311', 'basic', 81.00, 4), ('F311', 'flex', 125.00, 3), ('F311', 'business', 295.00, 2),
  ('F312', 'basic', 95.00, 0), ('F312', 'flex', 150.00, 0), ('F312', 'business', 340.00, 0),
  ('F313', 'basic', 93.00, 0), ('F313', 'flex', 148.00, 0), ('F313', 'business', 335.00, 0),
  ('F314', 'basic', 88.00, 0), ('F314', 'flex', 139.00, 0), ('F314', 'business', 322.00, 0),
  ('F315', 'basic', 97.00, 0), ('F315', 'flex', 155.00, 0), ('F315', 'business', 350.00, 0),
  ('F316', 'basic', 103.00, 8), ('F316', 'flex', 161.00, 6), ('F316', 'business', 361.00, 3);
insert into hotels values
  ('H401', 'Fjord House', 'Oslo', 110.00, 6),
  ('H402', 'Harbour Inn', 'Oslo', 95.00, 2),
  ('H403', 'Ribeira Rooms', 'Porto', 84.00, 5),
  ('H404', 'Casa Douro', 'Porto', 120.00, 1),
  ('H405', 'Plaka Stay', 'Athens', 78.00, 8),
  ('H406', 'Hill View', 'Athens', 140.00, 3),
  ('H407', 'Baie Hotel', 'Nice', 132.00, 4),
  ('H408', 'Old Town Rest', 'Nice', 99.00, 0);
insert into bookings
  (booking_id, traveller_id, kind, status, booked_on, paid, flight_id, fare, bags, changes_made)
values
  ('B501', 'T201', 'flight', 'confirmed', '2026-05-02', 132.00, 'F305', 'flex', 1, 0),
  ('B502', 'T202', 'flight', 'confirmed', '2026-05-11', 210.00, 'F308', 'flex', 1, 0),
  ('B503', 'T203', 'flight', 'confirmed', '2026-05-15', 405.00, 'F303', 'business', 3, 0),
  ('B504', 'T204', 'flight', 'confirmed', '2026-06-01', 76.00, 'F310', 'basic', 0, 0),
  ('B505', 'T205', 'flight', 'confirmed', '2026-06-03', 109.00, 'F304', 'basic', 0, 0),
  ('B506', 'T207', 'flight', 'confirmed', '2026-05-20', 161.00, 'F316', 'flex', 1, 0),
  ('B507', 'T209', 'flight', 'confirmed', '2026-04-28', 185.00, 'F301', 'flex', 1, 1),
  ('B508', 'T211', 'flight', 'confirmed', '2026-05-30', 149.00, 'F308', 'basic', 0, 0),
  ('B510', 'T212', 'flight', 'confirmed', '2026-05-27', 141.00, 'F306', 'flex', 1, 0),
  ('B511', 'T201', 'flight', 'confirmed', '2026-06-02', 81.00, 'F305', 'basic', 0, 0),
  ('B512', 'T206', 'flight', 'confirmed', '2026-05-09', 395.00, 'F304', 'business', 3, 1),
  ('B513', 'T208', 'flight', 'confirmed', '2026-05-14', 188.00, 'F309', 'flex', 1, 0),
  ('B515', 'T207', 'flight', 'confirmed', '2026-06-15', 81.00, 'F311', 'basic', 0, 0),
  ('B517', 'T205', 'flight', 'used', '2026-05-16', 155.00, 'F315', 'flex', 1, 0),
  ('B518', 'T210', 'flight', 'used', '2026-05-03', 340.00, 'F312', 'business', 3, 0),
  ('B519', 'T202', 'flight', 'used', '2026-05-08', 148.00, 'F313', 'flex', 1, 0),
  ('B520', 'T209', 'flight', 'confirmed', '2026-05-29', 88.00, 'F314', 'basic', 0, 0),
  ('B521', 'T212', 'flight', 'used', '2026-05-06', 150.00, 'F312', 'flex', 1, 0);
insert into bookings
  (booking_id, traveller_id, kind, status, booked_on, paid, hotel_id, check_in, nights)
values
  ('B509', 'T203', 'hotel', 'confirmed', '2026-05-15', 297.00, 'H401', '2026-07-03', 3),
  ('B514', 'T204', 'hotel', 'confirmed', '2026-06-01', 396.00, 'H407', '2026-06-17', 3),
  ('B516', 'T207', 'hotel', 'confirmed', '2026-06-12', 528.00, 'H407', '2026-06-21', 4),
  ('B522', 'T206', 'hotel', 'confirmed', '2026-05-09', 280.00, 'H406', '2026-07-20', 2);
