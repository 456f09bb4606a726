-- A small web shop. In its world today is 2026-06-15.
create table customers (
  customer_id text primary key,
  name text not null,
  email text not null,
  level text not null check (level in ('standard', 'gold'))
);
create table products (
  product_id text primary key,
  name text not null,
  category text not null,
  price real not null,
  stock integer not null,
  returnable integer not null
);
create table orders (
  order_id text primary key,
  customer_id text not null references customers,
  status text not null check (status in ('pending', 'shipped', 'delivered', 'cancelled')),
  ordered_on text not null,
  promised_on text not null,
  delivered_on text,
  ship_to text not null,
  payment text not null check (payment in ('card', 'gift card')),
  shipping real not null
);
create table order_items (
  order_id text not null references orders,
  product_id text not null references products,
  quantity integer not null,
  unit_price real not null,
  primary key (order_id, product_id)
);
create table returns (
  return_id integer primary key,
  order_id text not null references orders,
  product_id text not null references products,
  kind text not null check (kind in ('refund', 'replacement')),
  amount real not null
);
create table vouchers (
  voucher_id integer primary key,
  customer_id text not null references customers,
  order_id text references orders,
  amount real not null,
  reason text not null
);
-- One row an order, with what its goods cost together.
create view order_sheet as
select
  orders.*,
  customers.level,
  (select round(sum(quantity * unit_price), 2) from order_items where order_id = orders.order_id) as goods
from orders
join customers using (customer_id);
-- One row an order and product.
create view item_sheet as
select
  order_sheet.*,
  order_items.product_id,
  order_items.quantity,
  order_items.unit_price,
  products.category,
  products.stock,
  products.returnable
from order_sheet
join order_items using (order_id)
join products using (product_id);

insert into customers values
  ('C101', 'Mara Lindqvist', 'mara@lindqvist.example', 'standard'),
  ('C102', 'Teo Barros', 'teo.barros@mail.example', 'gold'),
  ('C103', 'Ines Okafor', 'ines@okafor.example', 'standard'),
  ('C104', 'Jonas Pfeiffer', 'j.pfeiffer@mail.example', 'gold'),
  ('C105', 'Lena Vasquez', 'lena.v@post.example', 'standard'),
  ('C106', 'Samir Haddad', 'samir@haddad.example', 'standard'),
  ('C107', 'Wren Calloway', 'wren@calloway.example', 'gold'),
  ('C108', 'Aiko Tanabe', 'aiko.t@post.example', 'standard'),
  ('C109', 'Dario Conti', 'dario@conti.example', 'standard'),
  ('C110', 'Petra Novak', 'petra.novak@mail.example', 'gold'),
  ('C111', 'Femi Adeyemi', 'femi@adeyemi.example', 'standard'),
  ('C112', 'Rosa Lindgren', 'rosa.l@post.example', 'standard');
insert into products values
  ('P201', 'Kettle Dune', 'kitchen', 39.90, 14, 1),
  ('P202', 'Hand mixer', 'kitchen', 54.50, 6, 1),
  ('P203', 'Bread knife', 'kitchen', 24.00, 30, 1),
  ('P204', 'Desk lamp', 'lighting', 32.00, 9, 1),
  ('P205', 'Reading lamp', 'lighting', 45.00, 4, 1),
  ('P206', 'Floor lamp', 'lighting', 89.00, 3, 1),
  ('P207', 'Wool blanket', 'home', 62.00, 11, 1),
  ('P208', 'Towel set', 'home', 28.50, 20, 0),
  ('P209', 'Wall clock', 'home', 35.00, 0, 1),
  ('P210', 'Headphones', 'audio', 79.00, 7, 1),
  ('P211', 'Earbuds', 'audio', 49.00, 15, 0),
  ('P212', 'Shelf speaker', 'audio', 59.00, 2, 1),
  ('P213', 'Bike pump', 'outdoor', 19.50, 25, 1),
  ('P214', 'Camping stove', 'outdoor', 68.00, 5, 1),
  ('P215', 'Water bottle', 'outdoor', 15.00, 40, 1),
  ('P216', 'Rucksack', 'outdoor', 95.00, 8, 1);
insert into orders values
  ('W3001', 'C101', 'shipped', '2026-06-09', '2026-06-17', null, 'Kastanienallee 3, 10435 Berlin', 'card', 0),
  ('W3002', 'C103', 'pending', '2026-06-13', '2026-06-20', null, 'Rua do Almada 51, 4050 Porto', 'card', 4.90),
  ('W3003', 'C104', 'delivered', '2026-05-22', '2026-05-29', '2026-05-28', 'Marktplatz 8, 04109 Leipzig', 'card', 0),
  ('W3004', 'C107', 'shipped', '2026-06-10', '2026-06-18', null, 'Quay Street 17, Galway', 'card', 0),
  ('W3005', 'C101', 'pending', '2026-06-14', '2026-06-21', null, 'Kastanienallee 3, 10435 Berlin', 'card', 4.90),
  ('W3006', 'C103', 'shipped', '2026-06-08', '2026-06-16', null, 'Rua do Almada 51, 4050 Porto', 'card', 0),
  ('W3007', 'C107', 'pending', '2026-06-12', '2026-06-19', null, 'Quay Street 17, Galway', 'card', 0),
  ('W3008', 'C111', 'pending', '2026-06-13', '2026-06-20', null, 'Via Roma 22, 10123 Turin', 'card', 4.90),
  ('W3009', 'C104', 'pending', '2026-06-14', '2026-06-22', null, 'Marktplatz 8, 04109 Leipzig', 'card', 4.90),
  ('W3010', 'C105', 'pending', '2026-06-14', '2026-06-21', null, 'Calle Mayor 14, 28013 Madrid', 'card', 0),
  ('W3011', 'C108', 'pending', '2026-06-12', '2026-06-19', null, 'Lange Straat 9, 2011 Haarlem', 'gift card', 0),
  ('W3012', 'C106', 'pending', '2026-06-13', '2026-06-20', null, 'Rue des Lilas 6, 69003 Lyon', 'card', 4.90),
  ('W3013', 'C106', 'shipped', '2026-06-07', '2026-06-15', null, 'Rue des Lilas 6, 69003 Lyon', 'card', 0),
  ('W3014', 'C111', 'delivered', '2026-05-26', '2026-06-02', '2026-06-02', 'Via Roma 22, 10123 Turin', 'card', 4.90),
  ('W3015', 'C112', 'delivered', '2026-04-24', '2026-05-02', '2026-05-01', 'Storgatan 40, 111 23 Stockholm', 'card', 0),
  ('W3016', 'C110', 'pending', '2026-06-14', '2026-06-21', null, 'Husova 5, 602 00 Brno', 'card', 0),
  ('W3017', 'C110', 'delivered', '2026-05-25', '2026-06-01', '2026-06-01', 'Husova 5, 602 00 Brno', 'card', 0),
  ('W3018', 'C107', 'delivered', '2026-05-12', '2026-05-20', '2026-05-27', 'Quay Street 17, Galway', 'card', 0),
  ('W3019', 'C112', 'delivered', '2026-06-02', '2026-06-09', '2026-06-09', 'Storgatan 40, 111 23 Stockholm', 'card', 4.90),
  ('W3020', 'C108', 'delivered', '2026-06-05', '2026-06-11', '2026-06-10', 'Lange Straat 9, 2011 Haarlem', 'card', 0),
  ('W3021', 'C109', 'delivered', '2026-06-01', '2026-06-08', '2026-06-10', 'Corso Italia 31, 34122 Trieste', 'card', 0),
  ('W3022', 'C109', 'delivered', '2026-05-28', '2026-06-03', '2026-06-08', 'Corso Italia 31, 34122 Trieste', 'card', 0),
  ('W3023', 'C102', 'delivered', '2026-05-18', '2026-05-25', '2026-05-25', 'Alfama 77, 1100 Lisbon', 'card', 0),
  ('W3024', 'C105', 'cancelled', '2026-05-30', '2026-06-06', null, 'Calle Mayor 14, 28013 Madrid', 'card', 0);
insert into order_items values
  ('W3001', 'P207', 1, 62.00),
  ('W3002', 'P203', 1, 24.00), ('W3002', 'P213', 1, 19.50),
  ('W3003', 'P210', 1, 79.00),
  ('W3004', 'P206', 1, 89.00),
  ('W3005', 'P204', 1, 32.00),
  ('W3006', 'P214', 1, 68.00), ('W3006', 'P215', 2, 15.00),
  ('W3007', 'P207', 1, 62.00), ('W3007', 'P215', 1, 15.00),
  ('W3008', 'P203', 1, 24.00), ('W3008', 'P215', 1, 15.00),
  ('W3009', 'P204', 1, 32.00),
  ('W3010', 'P202', 1, 54.50), ('W3010', 'P208', 1, 28.50),
  ('W3011', 'P212', 1, 59.00), ('W3011', 'P213', 2, 19.50),
  ('W3012', 'P201', 1, 39.90),
  ('W3013', 'P216', 1, 95.00),
  ('W3014', 'P201', 1, 39.90),
  ('W3015', 'P206', 1, 89.00),
  ('W3016', 'P206', 1, 89.00), ('W3016', 'P203', 1, 24.00),
  ('W3017', 'P207', 2, 62.00),
  ('W3018', 'P214', 1, 68.00),
  ('W3019', 'P209', 1, 35.00),
  ('W3020', 'P210', 1, 89.00),
  ('W3021', 'P202', 1, 54.50),
  ('W3022', 'P205', 1, 45.00), ('W3022', 'P204', 1, 32.00),
  ('W3023', 'P211', 2, 49.00),
  ('W3024', 'P215', 4, 15.00);
insert into vouchers (customer_id, order_id, amount, reason) values
  ('C110', null, 10.00, 'welcome'),
  ('C110', 'W3017', 7.50, 'price guarantee'),
  ('C104', null, 10.00, 'welcome');
