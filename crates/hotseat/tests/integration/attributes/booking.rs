//! Tests of the booking agent of `examples/booking` as plain test functions, with a scripted agent, user and
//! judge.

use hotseat_attributes::agent_spec;

#[agent_spec("Event Booking Agent", config = "../../examples/booking/hotseat.yaml")]
mod event_booking {
    use hotseat::dsl::prelude::*;

    #[setup]
    fn shared(g: &mut Group) {
        g.criterion("friendly", "The agent's response should be friendly");
        g.criterion("helpful", "The agent should help achieve the user's goal");

        g.simulator()
            .played_by("connectors:organiser")
            .role("Corporate event planner")
            .max_turns(15)
            .stop_when(|_, conversation| conversation.has_tool_call("book_venue"));

        g.topic("greeting")
            .characteristic("Initial contact phase")
            .agent_intent("Welcome the user and establish rapport")
            .evaluate(satisfy("friendly"))
            .forbid_claims(["venues", "pricing"]);

        g.topic("gathering_details")
            .characteristic("Collecting event requirements")
            .agent_intent("Collect sufficient information for venue search")
            .evaluate(satisfy(["friendly", "helpful"]))
            .forbid_claims("venues");

        g.topic("presenting_results")
            .characteristic("Presenting venue options")
            .trigger(on_tool_call("search_suppliers"))
            .agent_intent("Help user understand options using search results")
            .evaluate(satisfy("helpful"))
            .evaluate(grounded_in(["venues", "pricing"]).from_tools("search_suppliers"))
            .expect(call_tool("search_suppliers"));
    }

    #[it("handles standard venue search")]
    async fn standard_search(t: Test, user: User, conversation: Conversation) {
        t.expect_conversation_to(graph! {
            greeting => gathering_details,
            gathering_details => presenting_results,
            presenting_results => gathering_details,
        });

        user.simulate(|s| {
            s.goal("Find a venue for a corporate workshop with 50 attendees in Stuttgart");
        })
        .await;

        expect!(conversation.turns().len(), ge(3));
        expect!(conversation.topic_history(), contains("presenting_results"));
    }

    #[context("with scenarios")]
    mod scenarios {
        use super::*;

        #[it("finds a venue for {name}")]
        #[scenarios("../../examples/booking/venues.json")]
        async fn venues(user: User, conversation: Conversation, scenario: Scenario) {
            user.simulate(|s| {
                s.goal(scenario.str("goal")).personality(scenario.str("personality"));
            })
            .await;

            for expected in scenario.list("verification.assert") {
                let attendees = expected["arguments"]["attendees"].clone();
                expect!(conversation, have_tool_call("search_suppliers").with("attendees", attendees));
            }
        }
    }
}

#[agent_spec("Room Booking Agent", config = "../../examples/booking/hotseat.yaml")]
mod room_booking {
    use hotseat::dsl::prelude::*;

    #[setup]
    fn shared(g: &mut Group) {
        g.criterion("friendly", "The agent's response should be friendly");
        g.criterion("acknowledges_change", "Acknowledges modification requests gracefully");
    }

    #[it("handles booking with modification")]
    async fn modification(user: User, agent: Agent, conversation: Conversation) {
        user.says("Hi, I need to book a meeting room").await;

        evaluate!(agent, satisfy("friendly"));
        evaluate!(agent, intent("gather_requirements"));
        expect!(agent, not(call_tool("book_room")));
        expect!(agent, not(claim("availability")));

        user.says("The Blue Room for tomorrow at 2pm, 10 people").await;

        expect!(agent, call_tool("check_availability").with("room", "Blue Room").with("capacity", 10));
        evaluate!(agent, grounded_in(["room_catalog", "calendar"]));

        user.says("Actually, make it 3pm instead").await;

        evaluate!(agent, satisfy("acknowledges_change"));
        expect!(agent, call_tool("check_availability"));
        evaluate!(agent, matches(r"(?i)3[:\s]?00\s*pm|15[:\s]?00"));

        user.says("Yes, please book it").await;

        expect!(agent, call_tool("book_room"));
        evaluate!(agent, grounded_in("booking_confirmation"));
        evaluate!(agent, satisfy("friendly"));

        expect!(conversation.turns().len(), eq(4));
        expect!(conversation.tool_names(), contains(["check_availability", "book_room"]));
    }

    #[context("topics")]
    mod topics {
        use super::*;

        #[setup]
        fn phases(g: &mut Group) {
            g.topic("greeting").characteristic("Initial contact and welcome");
            g.topic("gathering_details").characteristic("Collecting booking requirements");
            g.topic("confirming").characteristic("Confirming and finalizing the booking");
        }

        #[it("progresses through booking flow")]
        async fn flow(t: Test) {
            t.expect_conversation_to(graph! {
                greeting => gathering_details,
                gathering_details => confirming,
                confirming,
            });

            t.user.says("Hello!").await;

            expect!(t.agent, in_topic("greeting"));
            evaluate!(t.agent, satisfy("friendly"));

            t.user.says("I need the Blue Room for 10 people tomorrow").await;

            expect!(t.agent, in_topic("gathering_details"));
            expect!(t.conversation.topic_history(), eq(["greeting", "gathering_details"]));
            expect!(t.agent, call_tool("check_availability"));

            t.user.says("Yes, book it").await;

            expect!(t.agent, in_topic("confirming"));
            expect!(t.agent, call_tool("book_room"));
        }
    }
}
