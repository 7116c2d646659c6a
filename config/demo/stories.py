"""Holds the stories of the sample newsroom, in a harbour town whose places and people are invented."""

from __future__ import annotations

from typing import Any, Final, NamedTuple


class DemoStory(NamedTuple):
    """A story that is pushed to the sample source; `slug` is its external id and the end of its address."""

    slug: str
    title: str
    body: str


PERSONAS: Final[tuple[dict[str, Any], ...]] = (
    {
        "name": "Brentwick Daily",
        "handle": "brentwickdaily",
        "language": "en",
        "who_you_are": "The newsroom of Brentwick, a harbour town of 41,000 people.",
        "voice": "Plain and friendly. Short sentences. Says what happened before it says what it means.",
        "brand": {"primary": "#1f4e5f", "accent": "#f2a541"},
    },
    {
        "name": "Mira Holm",
        "handle": "miraholm",
        "language": "en",
        "who_you_are": "A reporter who writes about food, gardens and the people behind them.",
        "voice": "Warm and curious. Lets people speak for themselves.",
        "approved_lines": [
            "I have eaten in every kitchen of this town, and the best ones have no sign.",
            "A garden is a slow newspaper: it tells you what happened, only later.",
        ],
        "brand": {"primary": "#5b3a29", "accent": "#9bc53d"},
    },
    {
        "name": "Harbour Desk",
        "handle": "harbourdesk",
        "language": "en",
        "who_you_are": "The desk for boats, weather and the sea.",
        "voice": "Dry and exact. Numbers first.",
        "brand": {"primary": "#0b3954", "accent": "#ff6663"},
    },
)
"""The personas of the workspace, as their form's fields; the first one is the source's."""
TOPICS: Final[tuple[dict[str, Any], ...]] = (
    {
        "title": "What the harbour smells of",
        "notes": "Tar, diesel and bread. The bakery at the quay opens at four.",
    },
    {"title": "The town's oldest shop", "notes": "Okafor & Daughters has sold rope and lamp oil since 1887."},
    {
        "title": "Why the ferries are quiet",
        "notes": "Electric boats are hardly heard at 200 metres, engineers measured.",
    },
    {
        "title": "Gardens on flat roofs",
        "notes": "Eleven roofs carry soil. The town pays a third of what it costs.",
    },
    {
        "title": "Learning to swim at sixty",
        "notes": "The morning course of the pool has 24 pupils, the oldest is 81.",
    },
    {
        "title": "The night watch of the library",
        "notes": "On Thursdays the reading room stays open until midnight.",
    },
    {"title": "Storm stories", "notes": "Fishermen tell of the storm of 1987 every January in the net loft."},
)
"""The topics of the workspace, as their form's fields."""
STORIES: Final = (
    DemoStory(
        "ferry-line",
        "The harbour gets a new ferry line",
        "The council of Brentwick voted for a new ferry line on Tuesday evening after two hours of debate. Four electric "
        "boats will cross the bay every twenty minutes from six in the morning until midnight.\n\n"
        "“We waited for this line for eleven years,” said Ruth Okafor, who runs the fish market at the northern quay. The "
        "city pays 12 million crowns for the boats, and the region pays for the two new piers. Each boat carries 140 "
        "passengers and 40 bicycles, and it needs six minutes at the quay to charge its batteries.\n\n"
        "Tickets will cost as much as a bus ride. Critics say that the piers come too late for this summer's visitors. The "
        "first boat leaves the northern quay on 3 May with the children of the harbour school on board.",
    ),
    DemoStory(
        "roof-wheat",
        "A bakery bakes with wheat from its own roof",
        "A bakery in the Mill Lane bakes with wheat from its own roof. Mira Lind and her two sons sowed 60 square metres "
        "above the oven house last autumn and cut the first ears in July. The flour was enough for 44 loaves, which were "
        "sold out by noon.\n\n"
        "“Nobody lives from a roof,” said Mira Lind on the day of the harvest. School classes climb the stairs twice a week "
        "and learn which weeds are eaten. The family wants to grow rye next year, because it needs less water than wheat.\n\n"
        "The roof had to be strengthened with steel beams before the soil came up in 300 sacks. The town paid a third of the "
        "costs because the soil holds back the rain.",
    ),
    DemoStory(
        "library-night",
        "The library stays open until midnight",
        "The reading room of the town library stays open until midnight on Thursdays. In the first month 1,900 people came "
        "after eight in the evening, twice as many as the librarians had hoped for.\n\n"
        "“Half of them study, and the other half want to be somewhere warm where nobody sells them anything,” said the "
        "librarian Tom Ashby. Volunteers make tea, and a baker brings what was left over. The council pays 38,000 crowns a "
        "year for light, heating and two guards.\n\n"
        "Students of the nautical school asked for a second night. The council decides about it in spring, when the numbers "
        "of the winter are known.",
    ),
    DemoStory(
        "swim-sixty",
        "At the pool, 24 people over sixty learn to swim",
        "At seven in the morning the small pool belongs to 24 people over sixty who never learned to swim. The course is "
        "full until summer, and 31 more names stand on the list.\n\n"
        "“I lived at the sea for seventy years and was afraid of it,” said Agnes Moor, who is 81 and swam her first length in "
        "October. The trainer begins with breathing and leaves the rest to the water. Nobody has to put their head under.\n\n"
        "The health office pays for the course after a count of accidents in the harbour. Six of the eleven people who fell "
        "in last year could not swim.",
    ),
    DemoStory(
        "quiet-engines",
        "Quiet engines bring the herring back",
        "Fishermen of Brentwick land more herring since the ferries run on batteries. Engineers of the university measured "
        "the noise under water last summer and found that electric boats are hardly heard at a distance of 200 metres.\n\n"
        "“We used to set our nets an hour out, and now we set them off the pier,” said the fisherman Jonas Reed. The catch of "
        "the small boats rose by 18 per cent between May and September. Biologists warn that one good year proves little.\n\n"
        "The council wants to publish the measurements in June. Two other ports have asked for them.",
    ),
    DemoStory(
        "repair-cafe",
        "The repair café has mended its thousandth toaster",
        "The repair café in the old customs house has mended its thousandth toaster. It opens on the first Saturday of each "
        "month, and 60 volunteers take turns at the benches.\n\n"
        "“Most things are only dirty,” said the electrician Paula Stern, who has come since the first day. Of 100 things "
        "that are brought, 64 go home working. Sewing machines are the easiest, printers the worst.\n\n"
        "The volunteers want to teach a class at the secondary school next year. A hardware shop gives the screws.",
    ),
    DemoStory(
        "night-buses",
        "Night buses come every half hour from March",
        "Night buses run every half hour from March, on Fridays and Saturdays until four in the morning. The council pays "
        "210,000 crowns a year for the three lines, as much as for lighting the promenade.\n\n"
        "Waiters and nurses had collected 2,300 signatures for it. “I walked home for nine years,” said the nurse Lea Brandt "
        "after the vote. The taxi drivers are against the plan and expect to lose a tenth of their rides.\n\n"
        "The first bus leaves the station at ten past midnight. Day tickets are valid until five in the morning.",
    ),
    DemoStory(
        "lighthouse-rooms",
        "The lighthouse lets two rooms",
        "The lighthouse on Gull Point lets two rooms under the lamp. Guests climb 142 steps and are asked to bring no "
        "suitcase. The nights of the whole summer were sold within a day.\n\n"
        "“People want to be woken by nothing but the light,” said the keeper's granddaughter Ida Voss, who cooks for the "
        "guests. The money pays for the new windows on the western side. The lamp itself has run by itself since 1994.\n\n"
        "The monument office allowed the rooms for five years. Weddings are not allowed, because the stairs are too narrow.",
    ),
    DemoStory(
        "seagrass",
        "Divers plant 8,000 shoots of seagrass",
        "Divers planted 8,000 shoots of seagrass off Gull Point in one week. The meadow was lost in the warm summer of 2018, "
        "and with it the small fish that hide there.\n\n"
        "“It looks like gardening in slow motion,” said the diver Sam Okoro. Each shoot is tied to a bamboo stick that rots "
        "within a year. In a trial three years ago 61 of 100 shoots were still there after the second winter.\n\n"
        "The nature fund pays for the first two hectares. School classes count the shoots with a small camera in spring.",
    ),
    DemoStory(
        "market-hall",
        "The market hall opens on Sundays",
        "The market hall opens on Sundays from ten until three, at first for half a year. Of the 52 stalls 29 take part; the "
        "butchers stay at home.\n\n"
        "“On Sundays people buy with their children, and they buy slowly,” said Ruth Okafor of the fish market. The unions "
        "agreed after the council had promised double pay. Musicians of the town play at noon.\n\n"
        "The hall had 4,100 visitors on the first Sunday. The council wants to decide in autumn whether it goes on.",
    ),
    DemoStory(
        "bells",
        "St. Anne's rings again",
        "The bells of St. Anne's ring again after four years. The tower had moved by two centimetres, and the engineers "
        "silenced it in one night. The repair cost 1.4 million crowns.\n\n"
        "“The whole quarter had begun to oversleep,” said the sexton Carl Lindh. The largest bell was cast in 1641 and weighs "
        "1,800 kilograms. It now hangs in a frame of oak, as it did until 1920.\n\n"
        "It rings at seven, at noon and at six. Neighbours had asked for silence at night, and the parish agreed.",
    ),
    DemoStory(
        "bike-street",
        "Mill Lane becomes a street for bicycles",
        "Mill Lane becomes a street for bicycles in April. Cars may still drive there, but at the pace of the bicycles, and "
        "70 parking spaces make room for trees.\n\n"
        "“I was against it until I counted my customers,” said the shoemaker Emil Graf. Of 100 people who came in, 11 had "
        "parked in the lane. The shops asked for a place where vans can unload, and they got two.\n\n"
        "The council counted 3,600 bicycles on a day in September. Lamps and signs are put up in the last week of March.",
    ),
    DemoStory(
        "net-loft",
        "In the net loft they tell of the storm",
        "Every January the fishermen of Brentwick meet in the net loft and tell of the storm of 1987. This year 80 people sat "
        "between the nets, and the youngest teller was nine.\n\n"
        "“A story that nobody tells is a boat that nobody paints,” said the loft's owner Nils Arden. Eleven boats were lost "
        "that night and all of their crews came home. A student recorded six evenings for the town's archive.\n\n"
        "The recordings can be heard in the library from February. One of them lasts two hours, because nobody dared to stop "
        "the teller.",
    ),
    DemoStory(
        "water-pipes",
        "Brentwick loses less water than it ever did",
        "Brentwick loses 6 per cent of its drinking water on the way to the taps, less than it ever did. Ten years ago it "
        "was 19 per cent. Microphones on the pipes hear a leak before the street is wet.\n\n"
        "“At three in the morning a town is so quiet that you hear every drop,” said the engineer Hanna Weiss. The works "
        "replaced 84 kilometres of pipe. What is saved in a year would fill the pool 900 times.\n\n"
        "The price of water stays the same for three years. The oldest pipe still in use was laid in 1903.",
    ),
    DemoStory(
        "school-kitchen",
        "Pupils cook for 400",
        "At the harbour school pupils cook for 400 people every Wednesday. Twenty of them begin at half past six and miss "
        "two lessons, which they make up on Friday.\n\n"
        "“Nobody throws away what his friend has peeled,” said the cook Rosa Mendel. The waste fell from 38 kilograms a day "
        "to nine. The vegetables come from three farms behind the dyke.\n\n"
        "Parents pay two crowns more for a meal than before. The pupils write the menu, and fish fingers won only once.",
    ),
    DemoStory(
        "owls",
        "Owls nest in the old grain store",
        "A pair of barn owls nests in the old grain store at the harbour, the first in the town for 30 years. The builders "
        "found five eggs when they took off the roof, and stopped.\n\n"
        "“We work on the other side until the young ones fly,” said the builder Mats Holm. That takes about ten weeks and "
        "costs the owner 90,000 crowns. The nature fund pays half of it.\n\n"
        "A camera shows the nest in the window of the tourist office. On the first evening 200 people stood in the street.",
    ),
)
"""The stories of the four weeks in the order of time, whose items are published and measured up to now."""
TO_REVIEW: Final = (
    DemoStory(
        "tram-depot",
        "The tram depot becomes a hall for craft",
        "The old tram depot becomes a hall for craft and small workshops. The council chose the plan of a cooperative of 33 "
        "carpenters, potters and bicycle builders over that of a hotel on Monday night.\n\n"
        "“A hotel brings guests, and we bring reasons to come,” said the carpenter Vera Sand after the vote. The cooperative "
        "pays 640,000 crowns a year for 5,200 square metres and mends the glass roof itself. The tracks in the floor stay, "
        "and one of the trams becomes a café.\n\n"
        "The building of 1911 had stood empty since the trams moved to the northern line. Neighbours had feared noise, so the "
        "workshops close their gates at eight in the evening. The fire brigade asked for two more exits and gets them.\n\n"
        "Work on the roof begins in February and takes eight months. The first benches are to stand in the hall by November. "
        "Two rooms are kept for school classes, and the vocational school wants to move its joiners there.",
    ),
    DemoStory(
        "mussel-farm",
        "A mussel farm cleans the bay",
        "A mussel farm is to clean the inner bay of Brentwick. Ropes with young mussels hang from 400 buoys between the old "
        "pier and the shipyard since last week.\n\n"
        "“One mussel filters a litre of water in an hour,” said the biologist Kaya Lorenz of the marine station. The farm "
        "can hold two million of them. Nobody will eat the first harvest, because it takes up what the shipyard left behind; "
        "it becomes fertiliser.\n\n"
        "The water of the bay is clear down to 1.2 metres today, and the station hopes for three. The fishermen gave up two "
        "of their places for the buoys and are paid 75,000 crowns a year for it. Bathers will have to swim further east.\n\n"
        "The trial lasts four years and costs 3.1 million crowns. The region pays most of it, and the station measures every "
        "week what the mussels have done.",
    ),
)
"""The stories that are pushed last, whose items wait for a person's approval."""
MISHAPS: Final = (
    DemoStory(
        "snow-plough",
        "Children name the new snow plough",
        "The new snow plough of Brentwick is called Ploughbert. Children of the four primary schools chose the name out of "
        "1,200 that were sent in. The machine clears the 38 kilometres of cycle path before seven in the morning.",
    ),
    DemoStory(
        "ice-rink",
        "The ice rink opens a week early",
        "The ice rink on the market square opens a week early this year, because the nights are cold already. Skates cost "
        "three crowns an hour, and on Sundays they cost nothing. The town band plays on the first evening from six o'clock.",
    ),
    DemoStory(
        "repair-evening",
        "The library mends what is broken",
        "On the first Thursday of each month the library of Brentwick mends lamps, radios and toasters. Nine volunteers "
        "bring their own tools, and a repair costs nothing but the spare part. The first evening begins at seven.",
    ),
)
"""Stories whose publications are refused, of unknown outcome, and handed over to a person, in this order."""
CHANGED_FERRY_LINE: Final = (
    "The council of Brentwick voted for a new ferry line on Tuesday evening after two hours of debate. Four electric boats "
    "will cross the bay every thirty minutes from six in the morning until eleven at night.\n\n"
    "“We waited for this line for eleven years,” said Ruth Okafor, who runs the fish market at the northern quay. The city "
    "pays 14 million crowns for the boats, two million more than was said at first. Each boat carries 140 passengers and 40 "
    "bicycles.\n\n"
    "The first boat leaves the northern quay on 10 May, a week later than planned."
)
"""The new body of the first of `STORIES`, after its source changed it."""
