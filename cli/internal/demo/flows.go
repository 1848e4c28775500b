package demo

import "strconv"

func flows() []flow {
	return []flow{
		{
			id: "emb_solar7kq2", title: "What would solar save you?", groupID: "grp_home", url: "https://solar.example.com/savings",
			share: 50,
			releases: []release{
				{-30, "First version", "Solar for your roof", "#f4b400", false, "Next"},
				{12, "Ask in the reader's words", "What would solar save you?", "#f4b400", false, "Next"},
				{51, "Show how far it is to the end", "What would solar save you?", "#0f9d58", true, "Continue"},
				{77, "Name the time it takes", "What would solar save you? Two minutes tell.", "#0f9d58", true, "Continue"},
			},
			pages: []page{
				{id: "pg_so01", key: "welcome", title: "Welcome"},
				{id: "pg_so02", key: "home", title: "Your home", questions: []question{
					choose("home_type", "What do you live in?", "Detached house", "Semi-detached house", "Terraced house", "Apartment"),
					agree("owner", "It is mine", 81)}},
				{id: "pg_so03", key: "roof", title: "Your roof", questions: []question{
					choose("roof_direction", "Where does it face?", "South", "South-east", "South-west", "East or west", "I don't know"),
					number("roof_area_m2", "How large is it, in m²?", 20, 160, 5)}},
				{id: "pg_so04", key: "usage", title: "What you use", questions: []question{
					number("monthly_bill_eur", "What do you pay a month, in €?", 40, 320, 10),
					question{name: "yearly_kwh", label: "And in kWh a year, if you know", input: numberInput(1500, 9500, 1),
						answer: func(v *visitor) any { return v.between(1500, 9500) }}.unanswered(30)}},
				{id: "pg_so05", key: "extras", title: "More than panels", questions: []question{
					chooseSeveral("interests", "What else interests you?", "Battery", "Wallbox", "Heat pump"),
					choose("when", "When would you start?", "As soon as possible", "Within 6 months", "Within a year", "Just looking")}},
				{id: "pg_so06", key: "estimate", title: "Your estimate"},
				{id: "pg_so07", key: "contact", title: "Where do we send it?", questions: contactQuestions()},
				{id: "pg_so08", key: "thanks", title: "Thank you"},
			},
		},
		{
			id: "emb_loan3xw9d", title: "Mortgage check in two minutes", groupID: "grp_home", url: "https://loans.example.com/mortgage-check",
			share: 30,
			releases: []release{
				{-10, "First version", "Mortgage check", "#1a73e8", true, "Weiter"},
				{33, "In English", "Mortgage check in two minutes", "#1a73e8", true, "Continue"},
			},
			pages: []page{
				{id: "pg_lo01", key: "start", title: "Let's begin"},
				{id: "pg_lo02", key: "purpose", title: "What is it for?", questions: []question{
					choose("purpose", "I am looking for a mortgage for my", "First home", "Next home", "Refinance", "Investment")}},
				{id: "pg_lo03", key: "property", title: "The property", questions: []question{
					number("price_eur", "What does it cost, in €?", 120_000, 900_000, 5_000),
					write("postcode", "Its postcode", "text", func(v *visitor) any {
						return "0" + strconv.Itoa(1000+v.rng.IntN(9000))
					})}},
				{id: "pg_lo04", key: "deposit", title: "Your deposit", questions: []question{
					number("deposit_eur", "What can you pay yourself, in €?", 0, 200_000, 1_000)}},
				{id: "pg_lo05", key: "income", title: "Your income", questions: []question{
					number("net_income_eur", "What do you earn a month, net, in €?", 1_600, 9_800, 100),
					choose("employment", "How?", "Employed", "Self-employed", "Civil servant", "Retired")}},
				{id: "pg_lo06", key: "household", title: "Your household", questions: []question{
					number("adults", "Adults", 1, 3, 1), number("children", "Children", 0, 4, 1)}},
				{id: "pg_lo07", key: "offer", title: "Your offer"},
				{id: "pg_lo08", key: "contact", title: "How do we reach you?", questions: contactQuestions()},
				{id: "pg_lo09", key: "documents", title: "What we need", questions: []question{
					agree("documents_ready", "I have it all at hand", 54)}},
				{id: "pg_lo10", key: "done", title: "All done"},
			},
		},
		{
			id: "emb_skin5mh8t", title: "Find your skin care", groupID: "grp_care", url: "https://care.example.com/finder",
			share: 20,
			releases: []release{
				{-60, "First version", "Find your skin care", "#d81b60", false, "Next"},
				{5, "Softer colours", "Find your skin care", "#ad8174", false, "Next"},
				{64, "A question as headline, and how far it is", "What does your skin need today? ☀️", "#ad8174", true, "Next"},
			},
			pages: []page{
				{id: "pg_sk01", key: "hello", title: "Hello"},
				{id: "pg_sk02", key: "skin", title: "Your skin", questions: []question{
					choose("skin_type", "It is", "Dry", "Oily", "Combination", "Normal", "Not sure"),
					agree("sensitive", "It is sensitive", 35)}},
				{id: "pg_sk03", key: "goals", title: "Your goals", questions: []question{
					chooseSeveral("goals", "What matters to you?", "Hydration", "Clarity", "Even tone", "Fewer lines"),
					write("anything_else", "Anything else?", "long_text", func(v *visitor) any {
						return pick(v, "No perfume, please.", "Prefer something light ☀️", "Ich vertrage kein \"Retinol\".", "Crème à l'aloès ?")
					}).unanswered(70)}},
				{id: "pg_sk04", key: "routine", title: "Your routine", questions: []question{
					number("minutes_a_day", "Minutes a day", 2, 25, 1),
					{name: "budget", label: "€ a month", input: pairs{{"type", "number"}, {"min", 8}, {"max", 90}, {"step", decimal{1}}},
						answer: func(v *visitor) any {
							// A price has two decimal places.
							return decimal{v.between(800, 9000)}
						}}}},
				{id: "pg_sk05", key: "result", title: "Made for you"},
				{id: "pg_sk06", key: "contact", title: "Where do we send it?", questions: contactQuestions()},
			},
		},
	}
}

func customEvents() []customEvent {
	return []customEvent{
		{"extras", "option_selected", func(v *visitor) pairs {
			return pairs{{"option", pick(v, "battery", "wallbox", "heat_pump")}, {"selected", v.rng.IntN(4) > 0}}
		}},
		{"estimate", "estimate_shown", func(v *visitor) pairs {
			return pairs{{"savings_eur_per_year", v.between(180, 2400)}, {"panels", v.between(6, 28)}}
		}},
		{"contact", "form_started", func(v *visitor) pairs { return pairs{{"field", pick(v, "first_name", "email")}} }},
		{"offer", "offer_calculated", func(v *visitor) pairs {
			return pairs{{"rate_percent", decimal{v.between(265, 495)}}, {"years", v.between(2, 7) * 5}}
		}},
		{"property", "map_opened", func(v *visitor) pairs { return pairs{{"zoom", v.between(8, 17)}} }},
		{"result", "product_clicked", func(v *visitor) pairs {
			return pairs{{"sku", "SK-" + strconv.Itoa(100+v.rng.IntN(40))}, {"position", v.between(1, 6)}}
		}},
		{"goals", "hint_opened", func(*visitor) pairs { return pairs{} }},
	}
}
