"""Small files as people have them, each with what a person would write down about it.

A case is its text, and for each column its kind and its cells; codes are those of the findings about it.
"""
# ruff: noqa: E501

from __future__ import annotations

from datetime import date, datetime, time
from typing import NamedTuple

NUMBER, DATE, TIME, FLAG, TEXT = "number", "date", "time", "flag", "text"


class File(NamedTuple):
    text: str | bytes
    columns: dict[str, tuple[str, list]]
    codes: tuple[str, ...] = ()


def many(rows: list[str], times: int = 30) -> str:
    return "".join(row + "\n" for row in rows) * times


D = date
FILES = {
    # Germany
    "german export": File(
        "Kunde;Umsatz;Datum;aktiv\nA;1.234,50;17.02.2025;ja\nB;12,00;01.03.2025;nein\nC;987.654,32;28.02.2025;ja\n",
        {"Kunde": (TEXT, ["A", "B", "C"]), "Umsatz": (NUMBER, [1234.5, 12, 987654.32]),
         "Datum": (DATE, [D(2025, 2, 17), D(2025, 3, 1), D(2025, 2, 28)]), "aktiv": (FLAG, [True, False, True])},
    ),
    "german money": File(
        "Gehalt;Quote\n5.009,14 €;5,5 %\n-12,00 €;12,0 %\n850 €;0,5 %\n",
        {"Gehalt": (NUMBER, [5009.14, -12, 850]), "Quote": (NUMBER, [5.5, 12, 0.5])},
    ),
    "german thousands beside decimals": File(
        "a;b\n8.123;5,0\n9.001;4,5\n", {"a": (NUMBER, [8123, 9001]), "b": (NUMBER, [5, 4.5])}
    ),
    "german cp1252 with sep": File(
        "sep=;\r\nStraße;Größe\r\nMüllerweg 5;1,80 m\r\nAm Öl 2;1,75 m\r\n".encode("cp1252"),
        {"Straße": (TEXT, ["Müllerweg 5", "Am Öl 2"]), "Größe": (NUMBER, [1.8, 1.75])},
    ),
    "german named months": File(
        "Tag;n\n17. Februar 2025;1\n3. März 2024;2\n", {"Tag": (DATE, [D(2025, 2, 17), D(2024, 3, 3)]), "n": (NUMBER, [1, 2])}
    ),
    "german short years": File("Tag;n\n17.02.25;1\n03.11.98;2\n", {"Tag": (DATE, [D(2025, 2, 17), D(1998, 11, 3)])}),
    "german times": File("von;bis\n07:30;17:46\n22:05;23:59\n", {"von": (TIME, [time(7, 30), time(22, 5)])}),
    "german dashes for missing": File("a;b\n1,5;x\n-;y\nk.A.;z\n2,5;x\n", {"a": (NUMBER, [1.5, None, None, 2.5])}),
    # France, Italy, Spain
    "french blanks": File(
        "prix;actif\n1 234,50;oui\n12,00;non\n1 000 000,5;Oui\n",
        {"prix": (NUMBER, [1234.5, 12, 1000000.5]), "actif": (FLAG, [True, False, True])},
    ),
    "french no-break blanks": File(
        "prix;n\n1\u202f234,50\u00a0€;1\n12,00\u00a0€;2\n", {"prix": (NUMBER, [1234.5, 12])}
    ),
    "french dates": File("jour,n\n17/02/2025,1\n01/03/2025,2\n", {"jour": (DATE, [D(2025, 2, 17), D(2025, 3, 1)])}),
    "french months": File("jour,n\n17 février 2025,1\n3 août 2024,2\n", {"jour": (DATE, [D(2025, 2, 17), D(2024, 8, 3)])}),
    "spanish flags": File("a,b\nsí,1\nno,2\nSi,3\n", {"a": (FLAG, [True, False, True])}),
    "italian money before": File("prezzo;n\n€ 1.500,00;1\n€ 12,50;2\n", {"prezzo": (NUMBER, [1500, 12.5])}),
    # Switzerland
    "swiss apostrophes": File(
        "Betrag;Datum\nCHF 1'234.50;17.02.2025\nCHF 12.00;05.06.2024\n",
        {"Betrag": (NUMBER, [1234.5, 12]), "Datum": (DATE, [D(2025, 2, 17), D(2024, 6, 5)])},
    ),
    "swiss typographic apostrophes": File("x;n\n1\u2019234\u2019567.25;1\n12.5;2\n", {"x": (NUMBER, [1234567.25, 12.5])}),
    "swiss prices without cents": File(
        "Preis;n\n1'234.-;1\n12.\u2013;2\nCHF 80.--;3\n", {"Preis": (NUMBER, [1234, 12, 80])}
    ),
    # United States
    "us money": File(
        'pay,when\n"$5,009.14",02/17/2025\n$12.00,12/31/2024\n"($1,200.50)",01/05/2025\n',
        {"pay": (NUMBER, [5009.14, 12, -1200.5]), "when": (DATE, [D(2025, 2, 17), D(2024, 12, 31), D(2025, 1, 5)])},
    ),
    "us thousands": File('n,y\n"1,234",2.5\n"12,345,678",3.5\n', {"n": (NUMBER, [1234, 12345678])}),
    "us accounting": File('n,y\n"(1,234)",a\n"5,678",b\n12-,c\n', {"n": (NUMBER, [-1234, 5678, -12])}, ("RB030",)),
    "us time stamps": File(
        "at,n\n02/17/2025 5:30 PM,1\n12/01/2024 11:05 AM,2\n",
        {"at": (DATE, [datetime(2025, 2, 17, 17, 30), datetime(2024, 12, 1, 11, 5)])},
    ),
    "us months": File(
        'at,n\n"Feb 17, 2025",1\n"December 1, 2024",2\n', {"at": (DATE, [D(2025, 2, 17), D(2024, 12, 1)])}
    ),
    "us unpadded dates": File("at,n\n1/1/1998,1\n12/25/1997,2\n", {"at": (DATE, [D(1998, 1, 1), D(1997, 12, 25)])}),
    "per cent": File("p,q\n5.5%,1\n12%,2\n0.25%,3\n", {"p": (NUMBER, [5.5, 12, 0.25])}),
    "units": File(
        "w,t,term\n12 kg,36.6°C,36 months\n7.5 kg,37°C,60 months\n",
        {"w": (NUMBER, [12, 7.5]), "t": (NUMBER, [36.6, 37]), "term": (NUMBER, [36, 60])},
    ),
    # India, United Kingdom
    "indian groups": File(
        'pay,on\n"₹12,34,567",17-02-2025\n"₹1,00,000",03-04-2024\n',
        {"pay": (NUMBER, [1234567, 100000]), "on": (DATE, [D(2025, 2, 17), D(2024, 4, 3)])},
    ),
    "rupees without paise": File('pay,on\n"Rs. 1,50,000/-",15-Aug-24\nRs. 20/-,03-JAN-99\n',
        {"pay": (NUMBER, [150000, 20]), "on": (DATE, [D(2024, 8, 15), D(1999, 1, 3)])},
    ),
    "rupees by code": File('pay,n\n"Rs. 1,500.50",1\nRs. 20,2\n', {"pay": (NUMBER, [1500.5, 20])}),
    "british": File(
        'fee,on\n"£1,250.00",17 Feb 2025\n£9.99,3 Mar 2024\n',
        {"fee": (NUMBER, [1250, 9.99]), "on": (DATE, [D(2025, 2, 17), D(2024, 3, 3)])},
    ),
    # ISO, programs
    "iso": File(
        "at,day\n2023-01-05T10:00:00Z,2023-01-05\n2023-01-06 00:00:00+02:00,2023-02-01\n",
        {"at": (DATE, [datetime(2023, 1, 5, 10), datetime(2023, 1, 5, 22)]), "day": (DATE, [D(2023, 1, 5), D(2023, 2, 1)])},
    ),
    "zones": File(
        "at,n\n2023-07-05 10:00 Europe/Berlin,1\n2023-01-05 10:00 Europe/Berlin,2\n",
        {"at": (DATE, [datetime(2023, 7, 5, 8), datetime(2023, 1, 5, 9)])},
    ),
    "year first with slashes": File("d,n\n2023/01/05,1\n2023/12/31,2\n", {"d": (DATE, [D(2023, 1, 5), D(2023, 12, 31)])}),
    "python": File("a,b,c\nTrue,1e-3,None\nFalse,-2.5,x\n", {"a": (FLAG, [True, False]), "b": (NUMBER, [0.001, -2.5]), "c": (TEXT, [None, "x"])}),
    "fractions of seconds": File(
        "at,n\n2023-01-05 10:00:00.123456,1\n2023-01-05 10:00:01.5,2\n",
        {"at": (DATE, [datetime(2023, 1, 5, 10, 0, 0, 123456), datetime(2023, 1, 5, 10, 0, 1, 500000)])},
    ),
    # Spreadsheets and their like
    "padded": File("a, b, c\n39, State-gov, <=50K\n50, ?, >50K\n", {"a": (NUMBER, [39, 50]), "b": (TEXT, ["State-gov", None]), "c": (TEXT, ["<=50K", ">50K"])}),
    "utf-16 with tabs": File("name\tx\nÄnne\t1,5\nBo\t2,5\n".encode("utf-16"), {"name": (TEXT, ["Änne", "Bo"]), "x": (NUMBER, [1.5, 2.5])}),
    "byte order mark": File("﻿a,b\n1,x\n2,y\n".encode(), {"a": (NUMBER, [1, 2]), "b": (TEXT, ["x", "y"])}),
    "titles above": File(
        "Report of sales;;\n;;\nshop;sum;n\nA;1,5;2\nB;2,5;3\n", {"shop": (TEXT, ["A", "B"]), "sum": (NUMBER, [1.5, 2.5])}
    ),
    "totals below": File("shop,sum,n\nA,10,1\nB,20,2\nTotal,30,\n", {"shop": (TEXT, ["A", "B"]), "sum": (NUMBER, [10, 20])}, ("RB031",)),
    "german totals": File("Shop;Summe;n\nA;10,5;1\nB;20,5;2\nGesamt;31,0;\n", {"Summe": (NUMBER, [10.5, 20.5])}, ("RB031",)),
    "footnotes below": File(
        "shop,sum,n\nA,10,1\nB,20,2\n\nSource: own survey\n* without taxes\n", {"shop": (TEXT, ["A", "B"]), "n": (NUMBER, [1, 2])}, ("RB031",)
    ),
    "footer of a query": File("shop,sum,n\nA,10,1\nB,20,2\n(2 rows)\n", {"sum": (NUMBER, [10, 20]), "n": (NUMBER, [1, 2])}, ("RB031",)),
    "padded footnotes": File(
        "shop;sum;n\nA;10;1\nB;20;2\n;;\nQuelle: Amt für Statistik;;\n", {"shop": (TEXT, ["A", "B"]), "n": (NUMBER, [1, 2])}, ("RB031",)
    ),
    "errors of spreadsheets": File("a,b\n1.5,x\n#DIV/0!,y\n#VALUE!,z\n2.5,x\n", {"a": (NUMBER, [1.5, None, None, 2.5])}),
    "years as header": File("2019,2020,2021,outcome\n1,2,3,up\n4,5,6,down\n", {"2019": (NUMBER, [1, 4]), "outcome": (TEXT, ["up", "down"])}),
    "no header": File("5.1,3.5,setosa\n4.9,3.0,virginica\n", {"column1": (NUMBER, [5.1, 4.9]), "column3": (TEXT, ["setosa", "virginica"])}),
    "codes": File(
        "zip,phone,iban\n01234,0441 1234567,DE02120300000000202051\n99999,030 123456,DE02500105170137075030\n",
        {"zip": (TEXT, ["01234", "99999"]), "phone": (TEXT, ["0441 1234567", "030 123456"])},
    ),
    "ranges and ordinals": File(
        "age,place,size\n20-29,1st,10+\n30-39,2nd,20+\n", {"age": (TEXT, ["20-29", "30-39"]), "place": (TEXT, ["1st", "2nd"]), "size": (TEXT, ["10+", "20+"])}
    ),
    "free text": File(
        "note,n\n" + "".join(f'"They called {k} times, and then paid it all.",{k}\n' for k in range(30)),
        {"note": (TEXT, ["They called 0 times, and then paid it all."]), "n": (NUMBER, [0, 1])},
    ),
    "mixed flags": File("a,b\nyes,1\nNo,2\nYES,3\nn,4\n", {"a": (FLAG, [True, False, True, False])}),
    "gender is no flag": File("a,b\nm,1\nf,2\n", {"a": (TEXT, ["m", "f"])}),
    # What cannot be known is said
    "dates that fit both orders": File("d,n\n03/04/2025,1\n05/06/2025,2\n", {"d": (DATE, [D(2025, 4, 3), D(2025, 6, 5)])}, ("RB030",)),
    "numbers that fit both signs": File('a,b\n"1,234",x\n"2,345",y\n', {"a": (NUMBER, [1234, 2345])}, ("RB030",)),
    "a typing error in dates": File(
        "d,n\n" + many(["17.02.2025,1", "01.03.2025,2"]) + "31.02.2025,3\n",
        {"d": (DATE, [D(2025, 2, 17), D(2025, 3, 1)])}, ("RB029",),
    ),
    "clocks in words": File(
        "at,n\n" + "".join(f"{7 + k % 12}:{k % 60:02d} Uhr,{k}\n" for k in [*range(60)] * 3), {"at": (TEXT, ["7:00 Uhr"])}, ("RB029",)
    ),
    "values below a limit": File(
        "lead,n\n" + "".join(f"{'<' * (k % 3 == 0)}{k},{k}\n" for k in range(60)), {"lead": (TEXT, ["<0", "1"])}, ("RB029",)
    ),
    "several currencies": File(
        "pay,n\n" + many(["5 €,1", "6 €,2", "7 €,3"]) + "8 $,4\n" * 5, {"pay": (TEXT, ["5 €", "6 €"])}, ("RB029",)
    ),
    "words among numbers": File(
        "n,m\n" + many(["5,1", "6,2", "7,3"]) + "unknown,4\n" * 5, {"n": (TEXT, ["5", "6"])}, ("RB029",)
    ),
}  # fmt: skip
